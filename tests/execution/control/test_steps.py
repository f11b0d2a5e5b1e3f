"""Moves that give a partition its new replicas in steps: what is asked for next, and what others
have done in between.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.domain.kafka import OngoingReassignment, PartitionState, Replicas
from rehome.domain.run.ledger_view import LedgerView, MoveStep
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.actions import Admit, Cancel, NextStep
from rehome.execution.decide import decide
from tests.execution.observed import POLICY, T0, TP, running, seen
from tests.ledger.small_plans import make_plan, move

MOVE = move("t", 0, (1, 2), (3, 4, 5), 5000)
PLAN = make_plan("p", MOVE)
ONE_AT_ONCE = replace(POLICY, max_new_replicas_at_once=1)
LATER = T0 + timedelta(minutes=1)
EVERYWHERE = (1, 2, 3, 4, 5)


def view(before: Replicas, target: Replicas, *, sent: bool = True) -> LedgerView:
    step = {TP[0]: MoveStep(before, target)}
    times = {TP[0]: T0} if sent else {}
    return running(PLAN, moves={TP[0]: MoveState.ADMITTED}, sent=times, steps=step)


def shown(*replicas: int, live: tuple[int, ...] = EVERYWHERE) -> Observation:
    there = {TP[0]: PartitionState(replicas[0], replicas, frozenset(replicas))}
    return seen(PLAN, live=live, partitions=there)


def test_each_step_adds_as_many_as_may_come_at_once_and_the_last_is_the_target() -> None:
    assert [MOVE.with_copies(n) for n in range(1, 5)] == [
        (1, 2, 3),
        (1, 2, 3, 4),
        (3, 4, 5),
        (3, 4, 5),
    ]
    assert ONE_AT_ONCE.next_step(MOVE, (1, 2)) == (1, 2, 3)
    assert replace(POLICY, max_new_replicas_at_once=2).next_step(MOVE, (1, 2, 3)) == (3, 4, 5)
    assert POLICY.next_step(MOVE, (1, 2)) == MOVE.target


@pytest.mark.parametrize(
    ("before", "target", "sent", "now", "then"),
    [
        ((1, 2), (1, 2, 3), True, (1, 2, 3), (1, 2, 3, 4)),
        ((1, 2), (1, 2, 3), False, (1, 2, 3), (1, 2, 3, 4)),  # the answer was lost
        ((1, 2, 3), (1, 2, 3, 4), False, (1, 2, 3), (1, 2, 3, 4)),  # it was never sent
        ((1, 2, 3), (1, 2, 3, 4), True, (1, 2, 3, 4), (3, 4, 5)),
    ],
)
def test_where_a_step_is_done_the_next_one_is_sent(
    before: Replicas, target: Replicas, sent: bool, now: Replicas, then: Replicas
) -> None:
    known = view(before, target, sent=sent)
    assert decide(PLAN, known, shown(*now), LATER, ONE_AT_ONCE) == [NextStep(((TP[0], then),))]


def test_a_step_in_flight_is_ours_and_waited_for() -> None:
    flies = {TP[0]: OngoingReassignment((1, 2, 3), (3,), ())}
    flight = replace(shown(1, 2, 3), ongoing=flies)
    known = view((1, 2), (1, 2, 3))
    assert decide(PLAN, known, flight, LATER, ONE_AT_ONCE) == []
    (settled, _) = decide(PLAN, replace(known, steps={}), flight, LATER, ONE_AT_ONCE)
    assert isinstance(settled, Settle)
    assert settled.state is MoveState.SUPERSEDED


def test_a_step_waits_for_the_broker_that_it_copies_to() -> None:
    known = view((1, 2), (1, 2, 3))
    assert decide(PLAN, known, shown(1, 2, 3, live=(1, 2, 3, 5)), LATER, ONE_AT_ONCE) == []


def test_a_pause_lets_steps_end_and_a_cancel_takes_all_of_them_back() -> None:
    known = view((1, 2), (1, 2, 3))
    paused = decide(PLAN, replace(known, pause_requested=True), shown(1, 2, 3), LATER, ONE_AT_ONCE)
    assert NextStep(((TP[0], (1, 2, 3, 4)),)) in paused
    asked = decide(PLAN, replace(known, cancel_requested=True), shown(1, 2, 3), LATER, ONE_AT_ONCE)
    assert asked[0] == Cancel((TP[0],), "cancel requested")
    assert not any(isinstance(action, NextStep) for action in asked)


def test_a_step_that_another_client_has_cancelled_is_not_sent_again_but_taken_back() -> None:
    known = view((1, 2, 3), (1, 2, 3, 4))
    actions = decide(PLAN, known, shown(1, 2, 3), LATER, ONE_AT_ONCE)
    assert actions[0] == Cancel((TP[0],), "another client cancelled one of its steps")
    soon = T0 + timedelta(seconds=1)
    assert decide(PLAN, known, shown(1, 2, 3), soon, ONE_AT_ONCE) == []


def test_replicas_that_another_client_has_added_are_no_step_of_a_plan_without_steps() -> None:
    waiting = running(PLAN)
    (settled, *_) = decide(PLAN, waiting, shown(1, 2, 3), LATER, ONE_AT_ONCE)
    assert isinstance(settled, Settle)
    assert settled.state is MoveState.SUPERSEDED
    whole = view((1, 2), MOVE.target)
    (settled, *_) = decide(PLAN, whole, shown(1, 2, 3), LATER, POLICY)
    assert isinstance(settled, Settle)
    assert settled.state is MoveState.SUPERSEDED


def test_a_first_step_that_was_never_sent_is_admitted_again() -> None:
    known = view((1, 2), (1, 2, 3), sent=False)
    live = seen(PLAN, live=EVERYWHERE)
    assert decide(PLAN, known, live, LATER, ONE_AT_ONCE) == [Admit((TP[0],))]
    assert known.state is PlanState.RUNNING
