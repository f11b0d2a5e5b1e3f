"""Approvals: a plan that was rejected, or that drifted since it was approved, never starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.domain.kafka import TopicPartition
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.approval.questions import AnswerKind
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.run.states import PlanState
from rehome.settings import Settings
from rehome.warehouse import PlanDirectory, Warehouse
from tests.dags.approval.answers import (
    APPROVE,
    REJECT,
    SEND_BACK,
    Answers,
    Given,
    after_approval,
    answered,
    answered_by,
)
from tests.dags.clusters import state_of, to
from tests.dags.site import Site
from tests.ledger.people import answers_of, approve_as
from tests.ledger.small_plans import make_plan, move
from tests.plugins.mailbox import Reported

FASTER = {"rate_bytes_per_s": 987_654_321}


def test_a_rejected_plan_is_cancelled_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])

    answered(monkeypatch, lambda _: Given(REJECT))
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}), approval=True)
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.cause) == (PlanState.CANCELLED, "rejected"), run.log
    assert run.tasks["throttle"] == run.tasks["execute"] == "skipped"
    assert "rejected by ann; nothing was changed" in run.log
    (asked,) = site.ledger.questions(plan.plan_id)
    assert asked.answered is not None
    assert (asked.answered.answer, str(asked.answered.by)) == (AnswerKind.REJECTED, "ann")
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.throttles()


def test_a_plan_sent_back_with_another_throttle_gets_a_dry_run_with_it_and_runs_with_it(
    monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """A person's answers, one after the other; each attempt asks anew, as Airflow's retries do."""
    topic = site.topics.create([[1, 2]])
    given = [(SEND_BACK, "quickly"), (SEND_BACK, "9 MB/s"), (APPROVE, "2.5 MB/s"), (APPROVE, "")]

    def by_ann(_: Answers) -> Given:
        option, throttle = given.pop(0)
        return Given(option, throttle=throttle)

    asked = answered(monkeypatch, by_ann)
    policy = {"largest_throttle": 5_000_000}
    kafka = {**site.cluster.client_settings(), "rehome.policy": policy}
    moved = to(topic, {0: [3, 2]})
    run = site.rehome(
        kafka, action="reassign", reassignment=moved, approval=True, throttle=4_000_000
    )
    assert run.state == "success", run.log
    first, no_rate, too_high, other = asked.bodies
    assert "4 MB/s" in first
    assert "Asked again" not in first
    assert "Asked again after ann's answer: `quickly` is no throttle" in no_rate
    assert "is above the largest throttle, 5000000" in too_high
    assert "Asked again after ann's answer: to be tried out with 2.5 MB/s." in other
    assert "at 2.5 MB/s per broker and direction" in other
    assert "2500000 bytes per second" in other
    assert len(asked.refused) == 3
    (plan,) = site.ledger.plans()
    answers = answers_of(site.ledger, plan.plan_id)
    assert answers == [*[AnswerKind.SENT_BACK] * 3, AnswerKind.APPROVED]
    assert plan.approval is not None
    assert plan.approval.terms.rate_bytes_per_s == 2_500_000
    assert PlanDirectory(plan.plan_dir).read_json("dry_run.json")["rate_bytes_per_s"] == 2_500_000
    (begun, *_) = site.ledger.rate_changes(plan.plan_id)
    assert begun.limit_bytes_per_s == 2_500_000


def test_a_plan_that_its_dry_run_refuses_with_another_throttle_cannot_be_approved(
    monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    from rehome.operators.approval import approve as module
    from rehome.operators.dry_run import tried_out
    from rehome.run import evidence

    topic, really = site.topics.create([[1, 2]]), tried_out
    before = state_of(site.gateway, [topic])

    def refused(task: Any, *arguments: Any) -> Any:
        finding = Finding(Severity.ERROR, "inflow", topic, "it would never end")
        found = replace(really(task, *arguments), findings=(finding,))
        evidence.record_dry_run(task.context, task.directory, found)
        return found

    def by_ann(asked: Answers) -> Given:
        first = len(asked.bodies) == 1
        return Given(SEND_BACK, throttle="1 kB/s") if first else Given(REJECT)

    monkeypatch.setattr(module, "tried_out", refused)
    asked = answered(monkeypatch, by_ann)
    site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}), approval=True, throttle=10**6)
    assert asked.names == [[APPROVE, SEND_BACK, REJECT], [SEND_BACK, REJECT]]
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.CANCELLED
    assert state_of(site.gateway, [topic]) == before


def test_a_plan_that_changes_while_a_person_decides_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, site: Site, reported: Reported
) -> None:
    topic = site.topics.create([[1, 2]])

    def by_ann(asked: Answers) -> Given:
        (plan,) = site.ledger.plans()
        if len(asked.bodies) == 1:
            site.ledger.request_rate(plan.plan_id, 3_000_000, "bob")
        return Given()

    asked = answered(monkeypatch, by_ann)
    moved = to(topic, {0: [3, 2]})
    run = site.run(action="reassign", reassignment=moved, approval=True, throttle=4_000_000)
    assert run.state == "success", run.log
    assert reported.kinds() == ["approval_waiting", "approval_waiting", "done"], (
        "each question once"
    )
    waiting = reported.webhook.reported[0]
    assert "reassign of 1 partition" in waiting["text"]
    assert waiting["page"].endswith(f"/plans/{waiting['plan_id']}")
    _, body = asked.bodies
    assert "3000000 bytes per second" in body
    assert "what was approved is not what would run by now: another throttle" in body
    assert asked.names == [[APPROVE, SEND_BACK, REJECT]] * 2
    assert asked.options[0] != asked.options[1], "the first one approves nothing any more"
    (plan,) = site.ledger.plans()
    answers = answers_of(site.ledger, plan.plan_id)
    assert answers == [AnswerKind.NOT_COUNTED, AnswerKind.APPROVED]
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
    assert site.ledger.holder(plan.cluster_id) is None, "no other run has to wait for it"


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
        row = site.ledger.last_dry_run(plan.plan_id, str(plan.dag_id), plan.run_id)
        assert row is not None
        site.ledger.record_dry_run(replace(row, rate_bytes_per_s=FASTER["rate_bytes_per_s"]))

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


@pytest.mark.parametrize("throttle", [pytest.param(5_000_000, marks=pytest.mark.long), 6_000_000])
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
    if by_person:
        approve_as(site.ledger, "ann", "asked", terms)
    else:
        site.ledger.approve("asked", plan.plan_hash, "ann", terms, lasting_s=60)
    site.ledger.claim("asked")
    site.ledger.transition("asked", PlanState.PAUSED, "a test")
    return params
