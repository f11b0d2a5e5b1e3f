"""Approvals: a plan that was rejected, or that drifted since it was approved, never starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator

from include.domain.kafka import TopicPartition
from include.domain.request.parse_request import parse_request
from include.domain.run.approval_terms import Terms
from include.domain.run.event_kind import EventKind
from include.domain.run.findings import Finding, Severity
from include.domain.run.states import PlanState
from include.settings import Settings
from include.warehouse import PlanDirectory, Warehouse
from local.process.waiting import wait_until
from tests.dags.approval.answers import after_approval, answered_by
from tests.dags.clusters import state_of, to
from tests.dags.site import Site
from tests.ledger.small_plans import make_plan, move
from tests.plugins.mailbox import Reported

FASTER = {"rate_bytes_per_s": 987_654_321}


def test_a_rejected_plan_is_cancelled_and_changes_nothing(
    approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])

    def reject(self: Any, context: Any) -> Any:
        """What the scheduler does once a person has answered in the UI."""
        answer = {"chosen_options": ["Reject"], "params_input": {}}
        who = {"responded_by_user": {"name": "ann"}, "responded_at": datetime.now(UTC)}
        return self.execute_complete(context, answer | who)

    monkeypatch.setattr(approve, "execute", reject)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}), approval=True)
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.cause) == (PlanState.CANCELLED, "rejected"), run.log
    assert run.tasks["throttle"] == run.tasks["execute"] == "skipped"
    assert "rejected by ann; nothing was changed" in run.log
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.throttles()


def test_a_plan_sent_back_with_another_throttle_gets_a_dry_run_with_it_and_runs_with_it(
    approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """A person's answers, one after the other; each attempt asks anew, as Airflow's retries do."""
    from rehome.operators.approve import SentBackError

    topic = site.topics.create([[1, 2]])
    answers = [("Send back", "quickly"), ("Send back", "9 MB/s"), ("Approve", "2.5 MB/s")]
    bodies, refused = list[str](), list[str]()

    def asked(self: Any, context: Any) -> Any:
        bodies.append(self.body)
        option, throttle = answers.pop(0) if answers else ("Approve", "")
        event = {"chosen_options": [option], "params_input": {"throttle": throttle}}
        who = {"responded_by_user": {"name": "ann"}, "responded_at": datetime.now(UTC)}
        try:
            return self.execute_complete(context, event | who)
        except SentBackError as error:
            refused.append(str(error))
            return self.execute(context)

    monkeypatch.setattr(ApprovalOperator, "execute", asked)
    policy = {"largest_throttle": 5_000_000}
    kafka = {**site.cluster.client_settings(), "rehome.policy": policy}
    moved = to(topic, {0: [3, 2]})
    run = site.rehome(
        kafka, action="reassign", reassignment=moved, approval=True, throttle=4_000_000
    )
    assert run.state == "success", run.log
    first, no_rate, too_high, other = bodies
    assert "4 MB/s" in first
    assert "Asked again" not in first
    assert "Asked again after ann's answer: `quickly` is no throttle" in no_rate
    assert "is above the largest throttle, 5000000" in too_high
    assert "Asked again after ann's answer: to be tried out with 2.5 MB/s." in other
    assert "at 2.5 MB/s per broker and direction" in other
    assert "2500000 bytes per second" in other
    assert len(refused) == 3
    (plan,) = site.ledger.plans()
    assert plan.approval is not None
    assert plan.approval.terms.rate_bytes_per_s == 2_500_000
    assert PlanDirectory(plan.plan_dir).read_json("dry_run.json")["rate_bytes_per_s"] == 2_500_000
    (begun, *_) = site.ledger.rate_changes(plan.plan_id)
    assert begun.limit_bytes_per_s == 2_500_000


def test_a_plan_that_its_dry_run_refuses_with_another_throttle_cannot_be_approved(
    approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    from rehome.operators import approve as module

    topic, offered, really = site.topics.create([[1, 2]]), list[list[str]](), module.tried_out
    before = state_of(site.gateway, [topic])

    def refused(*arguments: Any) -> Any:
        finding = Finding(Severity.ERROR, "inflow", topic, "it would never end")
        found = replace(really(*arguments), findings=(finding,))
        arguments[3].write_json("dry_run.json", found.to_json())
        return found

    def asked(self: Any, context: Any) -> Any:
        offered.append(list(self.options))
        option, throttle = ("Send back", "1 kB/s") if len(offered) == 1 else ("Reject", "")
        event = {"chosen_options": [option], "params_input": {"throttle": throttle}}
        who = {"responded_by_user": {"name": "ann"}, "responded_at": datetime.now(UTC)}
        try:
            return self.execute_complete(context, event | who)
        except module.SentBackError:
            return self.execute(context)

    monkeypatch.setattr(module, "tried_out", refused)
    monkeypatch.setattr(ApprovalOperator, "execute", asked)
    site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}), approval=True, throttle=10**6)
    assert offered == [["Approve", "Send back", "Reject"], ["Send back", "Reject"]]
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.CANCELLED
    assert state_of(site.gateway, [topic]) == before


def test_a_plan_that_changes_while_a_person_decides_is_asked_for_again(
    approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site, reported: Reported
) -> None:
    from rehome.operators.approve import SentBackError

    topic = site.topics.create([[1, 2]])
    asked: list[tuple[str, list[str]]] = []

    def answered(self: Any, context: Any) -> Any:
        asked.append((self.body, list(self.options)))
        (plan,) = site.ledger.plans()
        if len(asked) == 1:
            site.ledger.request_rate(plan.plan_id, 3_000_000, "bob")
        event = {"chosen_options": ["Approve"], "params_input": {"throttle": ""}}
        who = {"responded_by_user": {"name": "ann"}, "responded_at": datetime.now(UTC)}
        try:
            return self.execute_complete(context, event | who)
        except SentBackError:
            return self.execute(context)

    monkeypatch.setattr(ApprovalOperator, "execute", answered)
    moved = to(topic, {0: [3, 2]})
    run = site.run(action="reassign", reassignment=moved, approval=True, throttle=4_000_000)
    assert run.state == "success", run.log
    assert reported.kinds() == ["approval_waiting", "approval_waiting", "done"], (
        "each question once"
    )
    waiting = reported.webhook.reported[0]
    assert "reassign of 1 partition" in waiting["text"]
    assert waiting["page"].endswith(f"/plans/{waiting['plan_id']}")
    (_, first), (body, second) = asked
    assert "3000000 bytes per second" in body
    assert "what was approved is not what would run by now" in body
    assert first == second == ["Approve", "Send back", "Reject"]
    (plan,) = site.ledger.plans()
    assert plan.approval is not None
    assert plan.approval.terms.rate_bytes_per_s == 3_000_000


def test_an_approval_lapses_when_a_partition_changes_before_the_plan_starts(
    approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])

    def another_client_moves_it() -> None:
        assert not any(
            site.gateway.alter_reassignments({TopicPartition(topic, 0): [4, 2]}).values()
        )
        wait_until(
            lambda: site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (4, 2),
            "another client's move to end",
        )

    after_approval(monkeypatch, approve, another_client_moves_it)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == run.tasks["throttle"] == "failed"
    assert f"{topic}-0" in run.log
    assert site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (4, 2)
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.FAILED
    assert not site.ledger.throttles()


@pytest.mark.parametrize("by_person", [False, True], ids=["found", "asked_for"])
def test_a_plan_does_not_start_with_another_rate_than_was_approved(
    by_person: bool, approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """A dry run that is made anew finds another one, or a person asks for more."""
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])

    def tried_anew() -> None:
        (plan,) = site.ledger.plans()
        if by_person:
            site.ledger.request_rate(plan.plan_id, FASTER["rate_bytes_per_s"], "ann")
            return
        directory = PlanDirectory(plan.plan_dir)
        directory.write_json("dry_run.json", directory.read_json("dry_run.json") | FASTER)

    answered_by(monkeypatch, "ann")
    after_approval(monkeypatch, approve, tried_anew)
    moved = to(topic, {0: [3, 2]})
    run = site.run(action="reassign", reassignment=moved, approval=by_person)
    assert run.state == run.tasks["throttle"] == "failed"
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.FAILED
    assert "the rate would be 987654321 bytes per second" in plan.cause
    assert EventKind.APPROVAL_LAPSED in [event.kind for event in site.ledger.events(plan.plan_id)]
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.throttles()


def test_a_plan_does_not_start_with_an_expired_approval(
    monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])
    monkeypatch.setenv("REHOME_APPROVAL_LASTS_S", "0")
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == run.tasks["throttle"] == "failed"
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.FAILED
    assert "it expired at" in plan.cause
    assert state_of(site.gateway, [topic]) == before


@pytest.mark.parametrize("throttle", [5_000_000, 6_000_000])
def test_a_run_that_goes_on_under_other_terms_asks_a_person_again(
    throttle: int, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """A person has approved 5 MB/s, and the plan has paused before anything moved."""
    params = paused(site, by_person=True)
    asked = answered_by(monkeypatch, "ben")
    run = site.run(**params, plan_id="asked", throttle=throttle)
    assert run.state == "success", run.log
    approval = site.ledger.plan("asked").approval
    assert approval is not None
    assert approval.terms.rate_bytes_per_s == throttle
    if throttle == 5_000_000:
        assert not asked
        assert approval.by == "ann"
    else:
        assert "6000000 bytes per second" in asked[0]
        assert (approval.by, approval.by_person) == ("ben", True)
    assert site.ledger.plan("asked").state is PlanState.DONE


@pytest.mark.parametrize(
    "answers",
    [pytest.param("ann", marks=pytest.mark.long), "ben"],  # the name is of no account
    ids=["the_same", "another"],
)
def test_a_run_that_wants_a_person_asks_though_the_plan_has_paused_without_one(
    answers: str, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """The terms are the same, and so may be the name."""
    params = paused(site, by_person=False)
    asked = answered_by(monkeypatch, answers)
    run = site.run(**params, plan_id="asked", throttle=5_000_000, approval=True)
    assert run.state == "success", run.log
    assert len(asked) == 1
    assert site.ledger.plan("asked").approver == answers


def paused(site: Site, *, by_person: bool) -> dict[str, Any]:
    """Plan "asked", which ann has approved at 5 MB/s and which has paused; its parameters."""
    topic = site.topics.create([[1, 2]])
    plan = make_plan("asked", move(topic, 0, (1, 2), (3, 2)), cluster_id=site.cluster.cluster_id)
    params = {"action": "reassign", "reassignment": to(topic, {0: [3, 2]})}
    directory = Warehouse(Settings.load().warehouse).plan("asked")
    directory.save(plan, parse_request(params))
    site.ledger.create_plan(plan, params, directory.uri, "a-run", "test")
    terms = Terms(plan.plan_hash, 5_000_000)
    site.ledger.approve("asked", plan.plan_hash, "ann", terms, by_person=by_person, lasting_s=60)
    site.ledger.claim("asked")
    site.ledger.transition("asked", PlanState.PAUSED, "a test")
    return params
