"""One lease per cluster: who gets it, when it may be taken over, and what its loss forbids."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState, PlanState
from rehome.errors import PlanConflictError
from rehome.execution.access.lease import is_orphaned
from rehome.ledger.base.fencing import LeaseHeldError, LeaseLostError
from rehome.ledger.base.records import ThrottleEntry, ThrottleState, driver_name
from rehome.ledger.store import Ledger
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan
from tests.processes import FORKED

T0 = datetime(2030, 1, 1, tzinfo=UTC)
PLAN = make_plan("p1")
ENTRY = ThrottleEntry("p1", "c1", ConfigResource.topic("t"), "k", ("0:1",), None, "NOT_SET")
CLEARED = replace(ENTRY, state=ThrottleState.CLEARED)


@pytest.fixture
def clock() -> SetClock:
    """Stands still until a test lets time pass."""
    return SetClock(lambda: T0)


@pytest.fixture
def running(ledger: Ledger) -> Ledger:
    """A ledger with a running plan of run-1."""
    ledger.create_plan(PLAN, {}, "file:///x", "run-1", "ann")
    ledger.approve("p1", PLAN.plan_hash, "ann")
    ledger.claim("p1")
    return ledger


def test_a_lease_that_is_held_is_refused_naming_who_holds_it_and_until_when(
    ledger: Ledger,
) -> None:
    ledger.acquire_lease("c1", "run-1", 60)
    with pytest.raises(LeaseHeldError, match=r"run-1 holds cluster c1, .* 00:01:00 UTC"):
        ledger.acquire_lease("c1", "run-2", 60)
    assert ledger.acquire_lease("c2", "run-2", 60).epoch == 1


def test_a_silent_owner_is_followed_by_another_with_a_higher_epoch(
    ledger: Ledger, clock: SetClock
) -> None:
    first = ledger.acquire_lease("c1", "run-1", 60)
    clock.pass_s(59)
    with pytest.raises(LeaseHeldError):
        ledger.acquire_lease("c1", "run-2", 60)
    clock.pass_s(1)
    assert ledger.holder("c1") is None
    second = ledger.acquire_lease("c1", "run-2", 60)
    assert (second.owner, second.epoch) == ("run-2", first.epoch + 1)


def test_every_write_under_the_lease_and_every_sign_of_life_makes_it_last(
    ledger: Ledger, clock: SetClock
) -> None:
    under = ledger.under(ledger.acquire_lease("c1", "run-1", 60))
    for alive in (
        lambda: under.add_event(EventKind.REQUEST, ""),
        under.renew_lease,
        lambda: ledger.heartbeat("c1", "run-1", 60),
    ):
        clock.pass_s(50)
        alive()
        holder = ledger.holder("c1")
        assert holder is not None
        assert holder.expires_at == clock() + timedelta(seconds=60)
    assert not ledger.heartbeat("c1", "run-2", 60)


def test_a_new_attempt_of_the_owner_gets_the_lease_at_once_and_fences_off_the_old_one(
    ledger: Ledger,
) -> None:
    killed = ledger.under(ledger.acquire_lease("c1", "run-1", 60))
    retry = ledger.under(ledger.acquire_lease("c1", "run-1", 60))
    with pytest.raises(LeaseLostError, match="run-1 has lost the lease on cluster c1"):
        killed.renew_lease()
    retry.renew_lease()


def test_a_late_owner_keeps_its_lease_while_no_run_has_taken_it(
    ledger: Ledger, clock: SetClock
) -> None:
    under = ledger.under(ledger.acquire_lease("c1", "run-1", 60))
    clock.pass_s(3600)
    under.add_event(EventKind.REQUEST, "but first")
    with pytest.raises(LeaseHeldError):
        ledger.acquire_lease("c1", "run-2", 60)


def test_a_lease_given_back_is_free_and_only_its_owner_gives_it_back(ledger: Ledger) -> None:
    old = ledger.acquire_lease("c1", "run-1", 60)
    new = ledger.acquire_lease("c1", "run-1", 60)
    ledger.release_lease(old)
    assert ledger.holder("c1") is not None
    ledger.release_lease(new)
    assert ledger.holder("c1") is None
    assert not ledger.heartbeat("c1", "run-1", 60), "no heartbeat brings it back"
    with pytest.raises(LeaseLostError):
        ledger.under(new).renew_lease()
    assert ledger.acquire_lease("c1", "run-2", 60).epoch == new.epoch + 1


def test_a_run_that_does_not_drive_the_plan_gets_no_lease_to_act_on_it(
    running: Ledger, clock: SetClock
) -> None:
    running.acquire_lease("c1", "run-1", 60, plan_id="p1")
    with pytest.raises(LeaseHeldError):
        running.take_up("p1", "dag", "run-2", {}, "ann", lease_s=60)
    assert running.plan("p1").run_id == "run-1"
    clock.pass_s(60)
    running.take_up("p1", "dag", "run-2", {}, "ann", lease_s=60)
    holder = running.holder("c1")
    assert holder is not None
    assert holder.owner == running.plan("p1").driver == "dag/run-2"
    assert running.plan("p1").last_progress_at == clock(), "it has not stalled"
    clock.pass_s(600)
    with pytest.raises(PlanConflictError, match="Run dag/run-2 drives plan"):
        running.acquire_lease("c1", "run-1", 60, plan_id="p1")


SEEN = Observation(T0, {}, {}, frozenset())
WRITES: dict[str, Callable[[Ledger], object]] = {
    "admit": lambda ledger: ledger.admit("p1", PLAN.moves, SEEN, 1),
    "mark_sent": lambda ledger: ledger.mark_sent("p1", [TopicPartition("t", 0)]),
    "settle": lambda ledger: ledger.settle("p1", TopicPartition("t", 0), MoveState.DONE),
    "transition": lambda ledger: ledger.transition("p1", PlanState.DONE, "late"),
    "set_rate": lambda ledger: ledger.set_rate("p1", 5, "late"),
    "journal_throttles": lambda ledger: ledger.journal_throttles([ENTRY]),
    "mark_throttles": lambda ledger: ledger.mark_throttles([CLEARED]),
    "add_event": lambda ledger: ledger.add_event(EventKind.REQUEST, ""),
}


def test_nothing_is_written_under_a_lost_lease(running: Ledger, clock: SetClock) -> None:
    late = running.under(running.acquire_lease("c1", "run-1", 60))
    clock.pass_s(60)
    running.acquire_lease("c1", "run-2", 60)

    def whole() -> tuple[Any, ...]:
        moves, throttles = running.moves("p1"), running.throttles("p1")
        return running.plan("p1"), moves, running.reassignments("p1"), throttles, running.events()

    before = whole()
    for name, write in WRITES.items():
        with pytest.raises(LeaseLostError):
            write(late)
        assert whole() == before, name


def _take(url: str, owner: str, start: Any, got: Any) -> None:
    with Ledger.open(url) as ledger:
        start.wait()
        try:
            got.put((owner, ledger.acquire_lease("c1", owner, 60).epoch))
        except LeaseHeldError:
            got.put((owner, None))


@pytest.mark.slow
def test_exactly_one_of_the_processes_that_ask_at_once_gets_the_first_lease(
    ledger: Ledger, ledger_url: str
) -> None:
    start, got = FORKED.Barrier(3), FORKED.Queue()
    workers = [
        FORKED.Process(target=_take, args=(ledger_url, f"run-{n}", start, got)) for n in (1, 2)
    ]
    for worker in workers:
        worker.start()
    start.wait(240)
    answers = sorted((got.get(timeout=240)[1] for _ in workers), key=str)
    for worker in workers:
        worker.join(300)
    assert answers == [1, None]


def test_runs_of_two_dags_that_have_the_same_id_are_distinguished(ledger: Ledger) -> None:
    """Every night's run of a schedule has the same id in each DAG of that schedule."""
    plan, night = make_plan("p2"), "scheduled__2030-01-01T01:00:00+00:00"
    ledger.create_plan(plan, {}, "file:///nowhere", night, "ann", dag_id="by_night")
    ledger.approve("p2", plan.plan_hash, "ann")
    ledger.claim("p2")
    assert ledger.plan("p2").driver == f"by_night/{night}"
    with pytest.raises(PlanConflictError, match=re.escape(f"Run by_night/{night} drives plan")):
        ledger.acquire_lease("c1", driver_name("another", night), 60, plan_id="p2")
    ledger.acquire_lease("c1", driver_name("by_night", night), 60, plan_id="p2")
    with pytest.raises(LeaseHeldError):
        ledger.take_up("p2", "another", night, {}, "ben", lease_s=60)
    assert not ledger.heartbeat("c1", driver_name("another", night), 60)
    assert not is_orphaned(ledger.plan("p2"), ledger)
    ledger.take_up("p2", "by_night", night, {}, "ann", lease_s=60)
    assert ledger.plan("p2").driver == f"by_night/{night}"


def test_a_plan_of_an_earlier_rehome_is_driven_by_a_run_whose_dag_it_does_not_know(
    ledger: Ledger,
) -> None:
    plan = make_plan("p2")
    ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "ann")
    ledger.approve("p2", plan.plan_hash, "ann")
    ledger.claim("p2")
    ledger.acquire_lease("c1", "run-1", 60, plan_id="p2")
    ledger.take_up("p2", "reassign_partitions", "run-1", {}, "ann", lease_s=60)
    record = ledger.plan("p2")
    assert (record.dag_id, record.driver) == (None, "run-1")
