"""What copies hold when their move is settled, and the sums of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from rehome.domain.kafka import ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState
from rehome.ledger.store import Ledger
from rehome.ledger.stores.copies.brought import Brought, brought
from rehome.ledger.stores.copies.move_views import sums_of, sums_of_ended, sums_of_plans
from tests.execution.observed import seen
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan, move

COPY = move("t", 0, (1, 2), (3, 4), 1000)
ACROSS = move("u", 0, (1, 2), (1, 2), 500, ("/a", "/a"), ("/b", "/a"))
ORDER = move("v", 0, (1, 2), (2, 1), 700)
PLAN = make_plan("p1", COPY, ACROSS, ORDER)


def started(ledger: Ledger) -> None:
    ledger.create_plan(PLAN, {}, "file:///x", "run-1", "ann")
    ledger.approve("p1", PLAN.plan_hash, "ann")
    ledger.claim("p1")
    ledger.admit("p1", PLAN.moves, seen(PLAN), None)


def polled(
    ledger: Ledger, clock: SetClock, moved: Move, *copies: tuple[int, ReplicaState, int, int | None]
) -> Brought:
    """What is known after a poll.

    :param copies: broker, its state, its bytes, and how many it lacks.
    """
    clock.pass_s(5)
    statuses = [
        ReplicaStatus(
            ReplicaId(*moved.partition, broker),
            state,
            clock(),
            size_bytes=size,
            bytes_behind=behind,
        )
        for broker, state, size, behind in copies
    ]
    ledger.add_samples("p1", statuses, ProgressSample(clock(), 0, 0, 0, 3, 3))
    with ledger.reading() as connection:
        return brought(connection, "p1", [moved.partition])[moved.partition]


BEHIND, IN_SYNC = ReplicaState.BEHIND, ReplicaState.IN_SYNC


def test_a_copy_that_was_in_sync_is_whole_and_another_one_had_something_to_get(
    ledger: Ledger, clock: SetClock
) -> None:
    started(ledger)
    assert polled(ledger, clock, COPY) == Brought(0, None)
    assert polled(ledger, clock, COPY, (3, BEHIND, 400, 700)) == Brought(400, None)
    both = polled(ledger, clock, COPY, (3, IN_SYNC, 1100, 30), (4, BEHIND, 200, 900))
    assert both == Brought(1300, 1100 + 1100)


def test_of_a_copy_between_log_dirs_the_old_log_is_not_what_came(
    ledger: Ledger, clock: SetClock
) -> None:
    started(ledger)
    assert polled(ledger, clock, ACROSS, (1, IN_SYNC, 500, None)) == Brought(0, 500)
    assert polled(ledger, clock, ACROSS, (1, BEHIND, 120, 380)) == Brought(120, 500)


def test_another_order_brings_nothing(ledger: Ledger, clock: SetClock) -> None:
    started(ledger)
    assert polled(ledger, clock, ORDER, (1, IN_SYNC, 700, 0)) == Brought(0, 0)


def test_sums_have_what_is_in_place_and_by_how_much_it_differs(
    ledger: Ledger, clock: SetClock
) -> None:
    started(ledger)
    polled(ledger, clock, COPY, (3, IN_SYNC, 1100, 0), (4, IN_SYNC, 1200, 0))
    polled(ledger, clock, ACROSS, (1, IN_SYNC, 450, 0))
    for each in (COPY, ACROSS):
        ledger.settle("p1", each.partition, MoveState.DONE)
    done = MoveSums(2, 2500, 2500, 2750, 300)
    assert (done.shrunk, done.not_recorded) == (50, 0)
    waits = {MoveState.ADMITTED: MoveSums(1, 0)}
    with ledger.reading() as connection:
        assert sums_of_ended(connection, "p1") == {MoveState.DONE: done}
        assert sums_of(connection, "p1") == {MoveState.DONE: done} | waits
        assert sums_of_plans(connection, ["p1", "p2"])["p1"] == {MoveState.DONE: done} | waits
        assert sums_of_plans(connection, []) == {}
    assert ledger.view("p1").done == ledger.view_of_open("p1").done == done
    assert ledger.moves("p1")[COPY.partition].bytes_in_place == 2300


def test_of_two_polls_at_once_what_was_received_never_falls(
    ledger: Ledger, clock: SetClock
) -> None:
    started(ledger)
    sample = ProgressSample(clock(), 0, 0, 0, 3, 3, received_bytes=90)
    ledger.add_samples("p1", (), sample)
    late = replace(sample, sampled_at=clock() + timedelta(seconds=1), received_bytes=40)
    ledger.add_samples("p1", (), late)
    assert [each.received_bytes for each in ledger.samples("p1")] == [90, 90]
