"""A policy in the connection holds for every run through it, at its start and before it acts."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import PlanState
from tests.dags.approval.answers import REQUESTER, answered_by
from tests.dags.clusters import state_of, to
from tests.dags.site import Site
from tests.ledger.people import approve_as

ALWAYS = {"cron": "* * * * *", "hours": 10}
PAST = {"from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}


def settings(site: Site, **policy: Any) -> dict[str, Any]:
    return {**site.cluster.client_settings(), "rehome.policy": policy}


@pytest.fixture
def approve() -> type[Any]:
    """The class of the DAG's task ``approve``."""
    return type(importlib.import_module("dags.reassign_partitions").dag.get_task("approve"))


def test_a_run_that_the_policy_does_not_allow_ends_before_it_plans(site: Site) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])
    strict = settings(site, actions=["rebalance"], largest_throttle=1_000_000, windows=[PAST])
    asked = {"action": "reassign", "reassignment": to(topic, {0: [3, 2]}), "throttle": 1_000_001}
    run = site.rehome(strict, **asked)
    assert run.state == run.tasks["snapshot"] == "failed"
    for refusal in ("Action reassign is not", "above the largest throttle", "none opens again"):
        assert refusal in run.log
    assert not site.ledger.plans()

    tried = site.rehome(strict, dry_run=True, **asked)
    assert tried.state == "success", tried.log
    assert "A run that changes the cluster would be refused" in tried.log
    assert state_of(site.gateway, [topic]) == before


def test_a_policy_that_changes_before_the_plan_starts_is_applied(
    site: Site, approve: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])
    really = approve.execute

    def and_tighten(self: Any, context: Any) -> Any:
        result = really(self, context)
        kafka = {"conn_type": "kafka", "extra": settings(site, windows=[PAST], approval=True)}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
        return result

    monkeypatch.setattr(approve, "execute", and_tighten)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == run.tasks["throttle"] == "failed"
    assert "outside the allowed windows" in run.log
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.FAILED
    assert state_of(site.gateway, [topic]) == before


@pytest.mark.parametrize(
    "asked", [False, True], ids=["without_an_answer", "answered_by_the_requester"]
)
def test_an_approval_that_becomes_mandatory_before_the_plan_starts_is_required(
    asked: bool, site: Site, approve: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the policy lets people approve what is their own, a person has to all the same."""
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])
    really = approve.execute

    def and_tighten(self: Any, context: Any) -> Any:
        result = really(self, context)
        (plan,) = site.ledger.plans()
        assert plan.approval is not None
        if asked:
            given = plan.approval
            approve_as(site.ledger, plan.actor, plan.plan_id, given.terms)
        policy = settings(site, approval=True, own_approval=not asked)
        kafka = {"conn_type": "kafka", "extra": policy}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
        return result

    monkeypatch.setattr(approve, "execute", and_tighten)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == run.tasks["throttle"] == "failed"
    assert ("another person has to" if asked else "no person has") in run.log
    assert state_of(site.gateway, [topic]) == before


@pytest.mark.parametrize("own", [True, False], ids=["requester", "another"])
def test_an_approval_that_is_mandatory_is_asked_for_and_given_by_another_person(
    own: bool, site: Site, approve: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])

    answered_by(monkeypatch, REQUESTER if own else "bob")
    run = site.rehome(
        settings(site, approval=True, windows=[ALWAYS]),
        action="reassign",
        reassignment=to(topic, {0: [3, 2]}),
        throttle=5_000_000,
    )
    (plan,) = site.ledger.plans()
    assert plan.request["window_end"] is not None, "what is open ends"
    if own:
        assert run.state == run.tasks["approve"] == "failed"
        assert "another person has to approve it" in run.log
        assert plan.state is PlanState.FAILED
        assert state_of(site.gateway, [topic]) == before
    else:
        assert run.state == "success", run.log
        assert (plan.state, plan.approved_by) == (PlanState.DONE, "bob")


def test_a_throttle_above_the_largest_is_not_asked_of_a_plan_that_runs(
    site: Site, abandoned: Callable[[str], Plan]
) -> None:
    plan = abandoned(site.topics.create([[1, 2], [1, 2]]))
    run = site.rehome(
        settings(site, largest_throttle=1_000_000),
        dag="control_reassignment",
        plan_id=plan.plan_id,
        action="change_throttle",
        throttle=1_000_001,
    )
    assert run.state == "failed"
    assert "1000001 bytes per second is above the largest throttle, 1000000" in run.log
    assert site.ledger.plan(plan.plan_id).requested_rate_bytes_per_s is None


@pytest.mark.parametrize("dag", ["control_reassignment", "reassign_partitions"])
def test_a_plan_id_that_holds_a_path_is_refused(dag: str, site: Site) -> None:
    run = site.run(dag=dag, plan_id="../plans/of-others")
    assert run.state == "failed"
    assert "plan_id='../plans/of-others' is no plan id" in run.log


def test_partitions_that_the_policy_does_not_allow_are_refused_before_a_person_is_asked(
    site: Site,
) -> None:
    topic = site.topics.create([[1]])
    strict = settings(site, actions=["rebalance"], windows=[PAST])
    asked = {"dag": "add_partitions", "partitions": {topic: 2}}
    run = site.rehome(strict, **asked)
    assert run.state == run.tasks["dry_run"] == "failed"
    for refusal in ("Action add_partitions is not", "none opens again"):
        assert refusal in run.log
    assert site.rehome(strict, dry_run=True, **asked).state == "success"
    assert len(site.gateway.current_topics([topic])[topic].partitions) == 1


@pytest.mark.parametrize(
    ("policy", "reported"),
    [
        ({"windows": [PAST]}, "outside the allowed windows"),
        ({"approval": True, "own_approval": True}, "no person has"),
    ],
)
def test_a_policy_that_changes_before_partitions_are_created_is_applied(
    policy: dict[str, Any], reported: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rehome.operators.add_partitions import ApprovePartitionsOperator

    topic = site.topics.create([[1]])
    really = ApprovePartitionsOperator.execute

    def and_tighten(self: Any, context: Any) -> Any:
        result = really(self, context)
        kafka = {"conn_type": "kafka", "extra": settings(site, **policy)}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
        return result

    monkeypatch.setattr(ApprovePartitionsOperator, "execute", and_tighten)
    run = site.run(dag="add_partitions", partitions={topic: 2})
    assert run.state == run.tasks["create"] == "failed"
    assert reported in run.log
    assert len(site.gateway.current_topics([topic])[topic].partitions) == 1


@pytest.mark.parametrize("own", [True, False], ids=["requester", "another"])
def test_an_approval_of_new_partitions_that_is_mandatory_is_given_by_another_person(
    own: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered_by(monkeypatch, REQUESTER if own else "bob")
    topic = site.topics.create([[1]])
    strict = settings(site, approval=True)
    run = site.rehome(strict, dag="add_partitions", partitions={topic: 2})
    assert run.state == ("failed" if own else "success"), run.log
    assert ("another person has to approve it" in run.log) is own
    found = site.gateway.current_topics([topic])[topic].partitions
    assert len(found) == (1 if own else 2)
