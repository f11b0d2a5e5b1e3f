"""Cancels that come too late: on a simulated cluster, for a real one cannot be timed so closely."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from include.cluster.interface.port import ClusterPort
from include.domain.kafka import BrokerError, BrokerId, TopicDescription, TopicPartition
from include.domain.run.run_policy import Policy
from include.domain.run.states import MoveState, PlanState
from include.execution.access.own_cluster import OwnCluster
from include.execution.advance import advance
from include.execution.control.cancel import abort
from include.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
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
    advance(plan, ledger, cast(ClusterPort, cluster), Policy(1000, metadata_grace_s=0))
    assert sorted(cluster.targets) == [FIRST, SECOND]
    cluster.replicas_meanwhile = {FIRST: replicas}
    cluster.started.clear()
    abort(plan.plan_id, ledger, cast(ClusterPort, cluster), "enough")
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
    assert done.unread.keys() == {FIRST, SECOND}
    record = ledger.plan(plan.plan_id)
    assert record.state is PlanState.FAILED
    assert "their replicas could not be read: t-0: TOPIC_AUTHORIZATION_FAILED (29)" in record.cause
