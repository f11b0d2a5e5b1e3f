"""The plan's states, approval by hash, one active plan per cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.errors import PlanConflictError
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan, move
from tests.processes import FORKED


def recorded(ledger: Ledger, plan: Plan) -> Plan:
    ledger.create_plan(plan, {"action": "reassign"}, "file:///plans/x", "run-1", "ann")
    return plan


def approved(ledger: Ledger, plan: Plan) -> Plan:
    recorded(ledger, plan)
    ledger.approve(plan.plan_id, plan.plan_hash, "ben")
    return plan


def test_a_plan_is_read_back_as_it_was_recorded(ledger: Ledger) -> None:
    plan = recorded(ledger, make_plan("p1"))
    record = ledger.plan("p1")
    assert record.state is PlanState.PLANNED
    assert (record.cluster_id, record.plan_hash) == ("c1", plan.plan_hash)
    assert (record.request, record.plan_dir) == ({"action": "reassign"}, "file:///plans/x")
    assert (record.run_id, record.actor, record.bytes_total) == ("run-1", "ann", 200)
    assert record.created_at.tzinfo is not None
    assert [record.plan_id for record in ledger.plans("c1")] == ["p1"]


def test_plans_of_before_a_backup_are_not_recorded(ledger: Ledger) -> None:
    recorded(ledger, make_plan("p1"))
    assert ledger.not_recorded(["p2", "p1", "p0"]) == ["p0", "p2"]
    assert ledger.not_recorded([]) == []


def test_recording_a_plan_twice_changes_nothing(ledger: Ledger) -> None:
    plan = approved(ledger, make_plan("p1"))
    recorded(ledger, plan)
    assert ledger.plan("p1").state is PlanState.APPROVED
    assert [event.kind for event in ledger.events("p1")] == [EventKind.PLANNED, EventKind.APPROVED]


def test_a_recorded_plan_is_never_replaced_approved_or_not(ledger: Ledger) -> None:
    for record in (recorded, approved):
        record(ledger, make_plan("p1"))
        with pytest.raises(PlanConflictError, match="has planned other moves"):
            recorded(ledger, make_plan("p1", move("u", 5, (1,), (2,))))
        assert ledger.planned_moves("p1") == make_plan("p1").moves


def test_moves_are_read_back_as_they_were_planned_by_their_state(ledger: Ledger) -> None:
    within = move("t", 1, (1, 2), (1, 2), 7, ("/a", "any"), ("/b", "any"))
    other = replace(move("t", 0, (1, 2), (3, 2), 5), topic_id="id-of-t")
    recorded(ledger, make_plan("p1", other, within))
    assert ledger.planned_moves("p1") == (other, within)
    ledger.settle("p1", other.partition, MoveState.DONE)
    assert ledger.planned_moves("p1", MoveState.DONE) == (other,)
    assert ledger.planned_moves("p1", MoveState.ADMITTED) == ()


def test_an_approval_is_bound_to_the_hash_the_approver_saw(ledger: Ledger) -> None:
    recorded(ledger, make_plan("p1"))
    with pytest.raises(PlanConflictError, match="recorded now has the hash"):
        ledger.approve("p1", "0" * 64, "ben")
    assert ledger.plan("p1").state is PlanState.PLANNED


def test_a_plan_that_is_not_approved_cannot_start(ledger: Ledger) -> None:
    recorded(ledger, make_plan("p1"))
    with pytest.raises(PlanConflictError, match="Approve it first"):
        ledger.claim("p1")


def test_an_unknown_plan_is_a_clear_error(ledger: Ledger) -> None:
    with pytest.raises(PlanConflictError, match="knows no plan 'nope'"):
        ledger.plan("nope")


def test_a_second_plan_on_the_same_cluster_is_refused_and_the_first_is_named(
    ledger: Ledger,
) -> None:
    approved(ledger, make_plan("p1"))
    approved(ledger, make_plan("p2"))
    approved(ledger, make_plan("p3", cluster_id="c2"))
    ledger.claim("p1")
    with pytest.raises(PlanConflictError, match=r"plan p1 .running, run run-1. holds cluster"):
        ledger.claim("p2")
    assert ledger.plan("p2").state is PlanState.APPROVED
    ledger.claim("p3")
    active = ledger.active_plan("c1")
    assert active is not None
    assert active.plan_id == "p1"


def _claim(url: str, plan_id: str, start: Any, won: Any) -> None:
    with Ledger.open(url) as ledger:
        start.wait()
        try:
            ledger.claim(plan_id)
        except PlanConflictError:
            return
        won.put(plan_id)


def test_exactly_one_of_the_plans_that_claim_a_cluster_at_once_gets_it(
    ledger: Ledger, ledger_url: str
) -> None:
    names = ["p1", "p2", "p3"]
    for name in names:
        approved(ledger, make_plan(name))
    start, won = FORKED.Event(), FORKED.Queue()
    workers = [FORKED.Process(target=_claim, args=(ledger_url, name, start, won)) for name in names]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    winner = won.get(timeout=120)
    assert won.empty()
    active = ledger.active_plan("c1")
    assert active is not None
    assert active.plan_id == winner


def test_an_ended_plan_gives_its_cluster_back(ledger: Ledger) -> None:
    ends = (PlanState.DONE, PlanState.CANCELLED, PlanState.FAILED, PlanState.ROLLED_BACK)
    for end in ends:
        approved(ledger, make_plan(end))
        ledger.claim(end)
        assert ledger.transition(end, end, "because")
        assert not ledger.transition(end, end, "because")
        assert (ledger.plan(end).cause, ledger.plan(end).state) == ("because", end)
        assert ledger.plan(end).ended_at is not None
    approved(ledger, make_plan("next"))
    ledger.claim("next")


def test_a_paused_plan_keeps_its_cluster_and_can_go_on(ledger: Ledger) -> None:
    approved(ledger, make_plan("p1"))
    approved(ledger, make_plan("p2"))
    ledger.claim("p1")
    ledger.request_pause("p1", "ann")
    ledger.transition("p1", PlanState.PAUSED, "window")
    with pytest.raises(PlanConflictError, match="p1"):
        ledger.claim("p2")
    ledger.claim("p1")
    assert ledger.plan("p1").state is PlanState.RUNNING
    assert not ledger.plan("p1").pause_requested


def test_an_ended_plan_never_runs_again(ledger: Ledger) -> None:
    approved(ledger, make_plan("p1"))
    ledger.claim("p1")
    ledger.transition("p1", PlanState.CANCELLED, "asked")
    with pytest.raises(PlanConflictError, match="is cancelled"):
        ledger.claim("p1")


@pytest.mark.parametrize(
    ("ask", "field", "value"),
    [
        (lambda ledger: ledger.request_cancel("p1", "ann"), "cancel_requested", True),
        (lambda ledger: ledger.request_pause("p1", "ann"), "pause_requested", True),
        (lambda ledger: ledger.request_rate("p1", 5, "ann"), "requested_rate_bytes_per_s", 5),
    ],
)
def test_a_request_is_seen_by_decide_and_says_who_asked(
    ledger: Ledger, ask: Callable[[Ledger], None], field: str, value: object
) -> None:
    approved(ledger, make_plan("p1"))
    ledger.claim("p1")
    ask(ledger)
    assert getattr(ledger.view("p1"), field) == value
    assert ledger.events("p1")[-1].actor == "ann"


def test_an_ended_plan_takes_no_requests(ledger: Ledger) -> None:
    approved(ledger, make_plan("p1"))
    ledger.claim("p1")
    ledger.transition("p1", PlanState.DONE, "all moved")
    with pytest.raises(PlanConflictError, match="ended already"):
        ledger.request_cancel("p1", "ann")


@pytest.mark.parametrize(
    ("left_alone", "state", "kind"),
    [(0, PlanState.ROLLED_BACK, "rolled_back"), (2, PlanState.DONE, "rolled back in part")],
)
def test_a_rollback_changes_the_plan_that_it_takes_back(
    left_alone: int, state: PlanState, kind: str, ledger: Ledger
) -> None:
    approved(ledger, make_plan("p1"))
    ledger.claim("p1")
    rollback = make_plan("back")
    ledger.create_plan(rollback, {"plan_id": "p1"}, "file:///plans/x", "run-2", "ann")
    ledger.record_rollback("back", 0)
    assert ledger.plan("p1").state is PlanState.RUNNING, "not while it runs"
    ledger.transition("p1", PlanState.DONE, "every move is done")
    ledger.record_rollback("back", left_alone)
    assert ledger.plan("p1").state is state
    assert (ledger.events("p1")[-1].kind, ledger.events("p1")[-1].detail[:12]) == (
        kind,
        "by plan back",
    )
