"""Small moves take no slot, and wait for none; all the rest holds for them as for others."""

from __future__ import annotations

from dataclasses import replace

from rehome.domain.run.states import MoveState
from rehome.execution.actions import Admit
from rehome.execution.decide import decide
from tests.execution.admission.test_admit import AHEAD, admitted_of, disk, same_way
from tests.execution.observed import T0, TP, flying, running, seen
from tests.ledger.small_plans import make_plan, move

WITH_SMALL = replace(AHEAD, small_bytes=100)


def test_small_moves_take_no_slot_and_wait_for_none() -> None:
    plan = same_way(50_000, 50_000, 50_000, *[100] * 20)
    started = admitted_of(plan, WITH_SMALL)
    assert sorted(started) == [*TP[:2], *(move.partition for move in plan.moves[3:])]
    assert len(admitted_of(plan, AHEAD)) == 2


def test_no_more_may_be_in_flight_than_a_person_allows_however_small_they_are() -> None:
    few = replace(WITH_SMALL, max_partitions_in_flight=7)
    plan = same_way(50_000, *[0] * 20)
    assert len(admitted_of(plan, few)) == 7
    assert TP[0] in admitted_of(plan, few)
    assert len(admitted_of(plan, replace(few, max_small_in_flight=12))) == 1 + 12


def test_small_moves_take_no_place_of_larger_ones() -> None:
    plan = same_way(50_000, 40_000, *[0] * 20)
    one = replace(WITH_SMALL, max_partitions_in_flight=1, max_small_in_flight=10)
    started = admitted_of(plan, one)
    assert (len(started), TP[0] in started, TP[1] in started) == (1 + 10, True, False)
    view = running(plan, moves={m.partition: MoveState.ADMITTED for m in plan.moves[2:]})
    view = replace(view, moves=dict(view.moves) | dict.fromkeys(TP[:2], MoveState.PENDING))
    ongoing = {m.partition: flying(m) for m in plan.moves[2:]}
    (action,) = decide(plan, view, seen(plan, ongoing=ongoing), T0, one)
    assert action == Admit((TP[0],))


def test_small_moves_wait_for_brokers_disks_and_the_window_as_others_do() -> None:
    plan = make_plan("p", *(move("t", n, (1, 2), (3 + n, 2), 100) for n in range(2)))
    alive = frozenset({1, 2, 4})
    (action,) = decide(plan, running(plan), seen(plan, live_brokers=alive), T0, WITH_SMALL)
    assert action == Admit((TP[1],))
    full = {3: (disk(50),), 4: (disk(100),)}
    assert admitted_of(plan, WITH_SMALL, disks=full) == (TP[1],)


def test_moves_that_copy_nothing_are_small() -> None:
    plan = make_plan("p", *(move("t", n, (1, 2), (2, 1), 50_000) for n in range(5)))
    assert len(admitted_of(plan, replace(WITH_SMALL, max_partitions_in_flight=3))) == 3
    many = replace(WITH_SMALL, max_partitions_in_flight=3, max_small_in_flight=5)
    assert len(admitted_of(plan, many)) == 5


def test_small_moves_are_sent_again_beside_as_many_larger_ones_as_may_be() -> None:
    """Theirs are places of their own: the call that sent them was not answered."""
    plan = same_way(50_000, *[0] * 4)
    policy = replace(WITH_SMALL, max_partitions_in_flight=1, max_small_in_flight=3)
    view = running(plan, moves=dict.fromkeys(plan.by_partition, MoveState.ADMITTED))
    view = replace(view, sent={TP[0]: T0})
    ongoing = {TP[0]: flying(plan.moves[0])}
    actions = decide(plan, view, seen(plan, ongoing=ongoing), T0, policy)
    (admitted,) = (action.partitions for action in actions if isinstance(action, Admit))
    assert admitted == tuple(TP[1:4])
