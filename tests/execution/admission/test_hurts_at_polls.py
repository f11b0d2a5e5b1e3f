"""What a poll finds that keeps a plan from going on as it should."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.disks import Disk
from rehome.domain.kafka import BrokerError, OngoingReassignment, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.ledger_view import LedgerView, MoveSums, RefusedCancel
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState
from rehome.execution.admission.backlog import Backlog
from rehome.execution.decide import decide
from rehome.execution.poll import hurts_at
from tests.execution.observed import ONE, POLICY, T0, TP, in_flight, running, seen

AWAY = BrokerError(7, "REQUEST_TIMED_OUT")
OTHER = {TopicPartition("x", 0): OngoingReassignment((1, 2, 3), (3,), (1,))}


def hurts(view: LedgerView, now: Observation, plan: Plan = ONE, **policy: Any) -> tuple[Hurt, ...]:
    backlog = Backlog.of(plan, view, now)
    actions = decide(plan, view, now, T0, replace(POLICY, **policy), backlog)
    return hurts_at(plan, view, now, actions, backlog, ())


def test_of_a_plan_that_goes_on_nothing_hurts() -> None:
    assert hurts(running(ONE), seen(ONE)) == ()
    assert hurts(*in_flight(ONE)) == ()


def test_a_dead_broker_hurts_the_moves_that_need_it_in_flight_or_not() -> None:
    """A broker that only gives its replica up is not needed."""
    view, flying = in_flight(ONE)
    assert hurts(view, replace(flying, live_brokers=frozenset({2, 3}))) == ()
    dead = (Hurt(HurtKind.DEAD_BROKERS, (3,), 1),)
    assert hurts(view, replace(flying, live_brokers=frozenset({1, 2}))) == dead
    assert hurts(running(ONE), seen(ONE, live=(1, 2))) == dead


def test_a_broker_that_does_not_answer_is_not_dead() -> None:
    view, flying = in_flight(ONE)
    (found,) = hurts(view, replace(flying, missing={3: AWAY}))
    assert (found.kind, found.brokers) == (HurtKind.SILENT_BROKERS, (3,))
    assert "REQUEST_TIMED_OUT" in found.why
    assert hurts(view, replace(flying, missing={4: AWAY})) == ()  # it has no part in the plan


@pytest.mark.parametrize("additional", [True, False])
def test_another_clients_reassignment_is_shown_and_holds_a_plan_that_waits_for_it(
    additional: bool,
) -> None:
    (found,) = hurts(running(ONE), seen(ONE, ongoing=OTHER), additional=additional)
    assert (found.kind, found.partitions) == (HurtKind.FOREIGN, ("x-0",))
    assert (found.holds, found.hangs) == (not additional, False)
    dead = seen(ONE, ongoing=OTHER, live=(1, 2))
    by_kind = {each.kind: each for each in hurts(running(ONE), dead, additional=additional)}
    assert by_kind[HurtKind.FOREIGN].hangs is not additional
    assert "not alive" in by_kind[HurtKind.FOREIGN].why


def test_what_moves_wait_for_has_a_kind_of_its_own() -> None:
    full = seen(ONE, disks={3: (Disk("/a", 100_000, 10),)})
    (found,) = hurts(running(ONE), full)
    assert (found.kind, found.brokers, found.moves) == (HurtKind.WAITS_FOR_ROOM, (3,), 1)
    leaderless = seen(ONE)
    state = replace(leaderless.partitions[TP[0]], leader=None)
    (found,) = hurts(running(ONE), replace(leaderless, partitions={TP[0]: state}))
    assert (found.kind, found.moves) == (HurtKind.WAITS_FOR_LEADER, 1)


def test_throttles_that_are_gone_refused_cancels_and_moves_that_were_taken_over_hurt() -> None:
    view, flying = in_flight(ONE)
    now = replace(flying, unthrottled=(TP[0],))
    refused = {TP[0]: RefusedCancel(T0, T0, 1, "no replica in sync (39)")}
    taken = {MoveState.SUPERSEDED: MoveSums(2)}
    found = hurts(replace(view, refused_cancels=refused, settled=taken), now)
    assert [(each.kind, each.moves) for each in found] == [
        (HurtKind.NOT_CANCELLED, 1),
        (HurtKind.NOT_THROTTLED, 1),
        (HurtKind.TAKEN_OVER, 2),
    ]
    unread = replace(flying, throttles_unread={ConfigResource.cluster_default(): AWAY})
    assert [each.kind for each in hurts(view, unread)] == [HurtKind.THROTTLES_UNREAD]
