"""Cancels that come too late: on a simulated cluster, for a real one cannot be timed so closely."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from rehome.domain.configs import MIN_ISR, ConfigResource
from rehome.domain.kafka import BrokerError, BrokerId, TopicDescription, TopicPartition
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import move

MOVES = move("t", 0, (1, 2), (3, 2)), move("t", 1, (1, 2), (4, 2))
FIRST, SECOND = (m.partition for m in MOVES)


class TooLate(SimulatedCluster):
    """Between the poll and the cancel, a partition changes."""

    replicas_meanwhile: Mapping[TopicPartition, tuple[BrokerId, ...]] = {}

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[BrokerId] | None], **options: Any
    ) -> dict[TopicPartition, BrokerError | None]:
        if None in targets.values():
            for partition, replicas in self.replicas_meanwhile.items():
                self.targets.pop(partition, None)
                self.replicas[partition] = replicas
        return super().alter_reassignments(targets, **options)


def cancelled_late(
    ledger: Ledger, approved: Any, replicas: tuple[BrokerId, ...]
) -> tuple[TooLate, MoveState]:
    """Abort a plan of which the first move comes to have these replicas just before."""
    plan = approved(*MOVES, cluster_id="sim")
    cluster = TooLate([1, 2, 3, 4], plan.moves)
    advance(plan, ledger, cast(OwnCluster, cluster), Policy(1000, metadata_grace_s=0))
    assert sorted(cluster.targets) == [FIRST, SECOND]
    cluster.replicas_meanwhile = {FIRST: replicas}
    cluster.started.clear()
    abort(plan.plan_id, ledger, cast(OwnCluster, cluster), "enough")
    states = ledger.view(plan.plan_id).moves
    assert states[SECOND] is MoveState.CANCELLED
    assert cluster.replicas[SECOND] == (1, 2)
    return cluster, states[FIRST]


def test_a_move_that_completes_before_its_cancel_arrives_stays_where_it_is(
    ledger: Ledger, approved: Any
) -> None:
    """To put it back would copy it all again, and nothing would throttle or watch that."""
    cluster, state = cancelled_late(ledger, approved, (3, 2))
    assert (cluster.started, cluster.targets) == ([], {})
    assert (cluster.replicas[FIRST], state) == ((3, 2), MoveState.DONE)


def test_what_another_client_completes_before_the_cancel_arrives_is_theirs(
    ledger: Ledger, approved: Any
) -> None:
    cluster, state = cancelled_late(ledger, approved, (2, 4))
    assert (cluster.started, cluster.targets) == ([], {})
    assert (cluster.replicas[FIRST], state) == ((2, 4), MoveState.SUPERSEDED)


def test_the_order_is_restored_where_another_client_cancels_first(
    ledger: Ledger, approved: Any
) -> None:
    cluster, state = cancelled_late(ledger, approved, (2, 1))
    assert (cluster.replicas[FIRST], state) == ((1, 2), MoveState.CANCELLED)


class Refusing(SimulatedCluster):
    """Reports no topic."""

    refusing = False

    def describe_topics(
        self, names: Collection[str] | None = None, *, operations: bool = False
    ) -> dict[str, TopicDescription]:
        if not self.refusing:
            return super().describe_topics(names, operations=operations)
        error = BrokerError(29, "TOPIC_AUTHORIZATION_FAILED")
        return {name: TopicDescription(name, "", False, {}, error=error) for name in names or ()}


def test_what_has_ended_and_cannot_be_read_is_never_said_to_be_done_or_taken_back(
    ledger: Ledger, approved: Any
) -> None:
    plan = approved(*MOVES, cluster_id="sim")
    cluster = Refusing([1, 2, 3, 4], plan.moves)
    port = cast(OwnCluster, cluster)
    advance(plan, ledger, port, Policy(1000, metadata_grace_s=0))
    cluster.replicas[FIRST] = cluster.targets.pop(FIRST)
    cluster.refusing = True
    step = advance(plan, ledger, port, Policy(1000, metadata_grace_s=0))
    assert (step.settled, step.cancelled, step.finished) == ({}, [], None)

    done = abort(plan.plan_id, ledger, port, "enough")
    assert done.cancelled == (SECOND,)
    assert done.ended == {FIRST: MoveState.FAILED}
    assert done.unread.keys() == {FIRST}
    assert cluster.replicas[SECOND] == (1, 2), "its order is back without a reading"
    record = ledger.plan(plan.plan_id)
    assert record.state is PlanState.FAILED
    assert "their replicas could not be read: t-0: TOPIC_AUTHORIZATION_FAILED (29)" in record.cause


class NeverCancels(SimulatedCluster):
    """Answers each cancel as a controller does when no old replica is in sync."""

    asked = 0
    answer = "no old replica is in sync"

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[BrokerId] | None], **options: Any
    ) -> dict[TopicPartition, BrokerError | None]:
        if None not in targets.values():
            return super().alter_reassignments(targets, **options)
        self.asked += 1
        return dict.fromkeys(targets, BrokerError(39, "INVALID_REPLICA_ASSIGNMENT", self.answer))


@pytest.mark.slow
def test_a_cancel_that_is_refused_for_good_has_a_bound_and_an_end_that_says_what_is_left(
    ledger: Ledger, approved: Any, clock: SetClock
) -> None:
    plan = approved(*MOVES, cluster_id="sim")
    cluster = NeverCancels([1, 2, 3, 4], plan.moves)
    port, policy = cast(OwnCluster, cluster), Policy(1000, metadata_grace_s=0)
    advance(plan, ledger, port, policy)
    ledger.request_cancel(plan.plan_id, "ann")

    def told() -> list[str]:
        events = ledger.events(plan.plan_id)
        return [event.detail for event in events if event.kind is EventKind.NOT_CANCELLED]

    for number in range(60):
        cluster.answer = "still not" if number > 40 else cluster.answer
        step = advance(plan, ledger, port, policy, clock)
        assert (step.finished, step.in_flight) == (None, 2)
        clock.pass_s(5)
    assert cluster.asked <= 8
    assert len(told()) == 4, "one event for each move, and each answer"
    refused = ledger.plan(plan.plan_id).refused_cancels
    assert {each.asks for each in refused.values()} == {cluster.asked}

    clock.pass_s(policy.stall_timeout_s)
    step = advance(plan, ledger, port, policy, clock)
    record = ledger.plan(plan.plan_id)
    assert (step.finished, record.state) == (PlanState.CANCELLED, PlanState.CANCELLED)
    goes_on = "what of the plan could not be cancelled goes on, throttled"
    left = f"{goes_on}: t-0: INVALID_REPLICA_ASSIGNMENT (39)"
    assert record.cause.startswith(f"cancel requested; {left}")
    assert "t-1: INVALID_REPLICA_ASSIGNMENT (39)" in record.cause
    assert ledger.stopped_with_admitted("sim") == [plan.plan_id]
    assert len(told()) == 4


class Lagging(SimulatedCluster):
    """Of the first move, what was added is in sync, and one that was there before is not."""

    def describe_topics(
        self, names: Collection[str] | None = None, *, operations: bool = False
    ) -> dict[str, TopicDescription]:
        found = super().describe_topics(names, operations=operations)
        for topic in found.values():
            partitions = dict(topic.partitions)
            partitions[FIRST.partition] = replace(
                partitions[FIRST.partition], isr=frozenset({2, 3})
            )
            found[topic.name] = replace(topic, partitions=partitions)
        return found


@pytest.mark.parametrize(("min_isr", "held"), [("2", True), ("1", False)])
def test_a_cancel_that_would_leave_too_few_in_sync_is_not_asked_for(
    min_isr: str, held: bool, ledger: Ledger, approved: Any
) -> None:
    plan = approved(*MOVES, cluster_id="sim")
    cluster = Lagging([1, 2, 3, 4], plan.moves)
    cluster.configs[ConfigResource.topic("t"), MIN_ISR] = min_isr
    advance(plan, ledger, cast(OwnCluster, cluster), Policy(1000, metadata_grace_s=0))
    done = abort(plan.plan_id, ledger, cast(OwnCluster, cluster), "enough")
    assert (FIRST in cluster.targets) is held
    assert (done.errors.keys() == {FIRST}) is held
    if held:
        cause = ledger.plan(plan.plan_id).cause
        assert "would leave 1 in sync, below min.insync.replicas=2" in cause
