"""Cancelling what is ours, and only that; with the order of replicas that a cancel loses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from include.cluster.model import BrokerError, ReplicaId, TopicPartition
from include.cluster.port import ClusterPort
from include.execution.model import MoveState, Observation, PlanState
from include.execution.observe import observe
from include.execution.outcome import wanted_log_dirs
from include.ledger.database import utc_now
from include.ledger.store import Ledger
from include.planning.plan import Move, Plan

NO_REASSIGNMENT_IN_PROGRESS = 85
UNKNOWN_TOPIC_OR_PARTITION = 3


@dataclass(frozen=True)
class Cancelled:
    """What became of moves that were to be cancelled.

    :param cancelled: stopped; their old replicas are back in the old order.
    :param ended: found to have ended otherwise: done, superseded, or gone with their topic.
    :param errors: still in flight, because the controller refused.
    """

    cancelled: tuple[TopicPartition, ...] = ()
    ended: Mapping[TopicPartition, MoveState] = field(default_factory=dict)
    errors: Mapping[TopicPartition, BrokerError] = field(default_factory=dict)


def abort(
    plan: Plan,
    ledger: Ledger,
    cluster: ClusterPort,
    cause: str,
    *,
    state: PlanState = PlanState.FAILED,
    actor: str = "rehome",
) -> Cancelled:
    """End a plan now: cancel what is ours in flight, restore orders, record it. Idempotent.

    Reassignments that the ledger did not admit, or that go elsewhere than the plan does, are
    somebody else's and are left alone. A plan that has ended already is not touched; one that
    never started only changes its state.

    :param state: what the plan ends as: FAILED or CANCELLED.
    :raises ClusterError: the cluster could not be reached; the plan is as it was, try again.
    """
    if ledger.plan(plan.plan_id).state.ended:
        return Cancelled()
    view = ledger.view(plan.plan_id)
    ours = [move for move in plan.moves if view.moves[move.partition] is MoveState.ADMITTED]
    result = cancel_moves(plan.plan_id, ours, ledger, cluster, cause, MoveState.CANCELLED)
    if result.errors:
        left = ", ".join(f"{tp}: {error}" for tp, error in sorted(result.errors.items()))
        cause = f"{cause}; could not be cancelled and goes on: {left}"
    ledger.transition(plan.plan_id, state, cause, actor)
    return result


def cancel_moves(
    plan_id: str,
    moves: Collection[Move],
    ledger: Ledger,
    cluster: ClusterPort,
    cause: str,
    then: MoveState,
) -> Cancelled:
    """Cancel admitted moves, restore the order of their replicas, and settle them.

    :param then: what cancelled moves become: CANCELLED, or PENDING for a later run.
    """
    if not moves:
        return Cancelled()
    seen = observe(cluster, moves, utc_now())
    ended = {m.partition: state for m in moves if (state := _ended_otherwise(m, seen))}
    left = [move for move in moves if move.partition not in ended]
    errors = _cancel(cluster, left, seen)
    ended |= {
        partition: MoveState.FAILED
        for partition, error in errors.items()
        if error.code == UNKNOWN_TOPIC_OR_PARTITION
    }
    errors = {partition: error for partition, error in errors.items() if partition not in ended}
    cancelled = [m for m in left if m.partition not in errors and m.partition not in ended]
    _move_back_between_log_dirs(cluster, cancelled, seen)
    errors |= _restore_order(cluster, cancelled)
    stopped = tuple(m.partition for m in cancelled if m.partition not in errors)
    for partition in stopped:
        ledger.settle(plan_id, partition, then, cause)
    for partition, state in ended.items():
        ledger.settle(plan_id, partition, state, f"found when cancelling: {cause}")
    for partition, error in errors.items():
        ledger.add_event("not cancelled", f"{partition}: {error}", plan_id=plan_id)
    return Cancelled(stopped, ended, errors)


def _ended_otherwise(move: Move, seen: Observation) -> MoveState | None:
    state = seen.partitions.get(move.partition)
    if state is None:
        return MoveState.FAILED
    entry = seen.ongoing.get(move.partition)
    if entry is not None:
        return None if entry.target == move.target else MoveState.SUPERSEDED
    dirs_moving = any(replica in seen.future_log_dirs for replica in wanted_log_dirs(move))
    if state.replicas == move.target and move.target != move.current and not dirs_moving:
        return MoveState.DONE
    if set(state.replicas) - set(move.current) - set(move.target):
        return MoveState.SUPERSEDED
    return None


def _cancel(
    cluster: ClusterPort, moves: Collection[Move], seen: Observation
) -> dict[TopicPartition, BrokerError]:
    """Cancel every one, also what is not listed: it may have been sent a moment ago."""
    if not moves:
        return {}
    verdicts = cluster.alter_reassignments({move.partition: None for move in moves})
    return {
        partition: error
        for partition, error in verdicts.items()
        if error is not None and error.code != NO_REASSIGNMENT_IN_PROGRESS
    }


def _restore_order(
    cluster: ClusterPort, moves: Iterable[Move]
) -> dict[TopicPartition, BrokerError]:
    """Put the preferred leader first again. The same set in another order moves no data."""
    topics = cluster.describe_topics({move.partition.topic for move in moves})
    back = {}
    for move in moves:
        topic = topics.get(move.partition.topic)
        state = topic.partitions.get(move.partition.partition) if topic else None
        if state is not None and state.replicas != move.current:
            back[move.partition] = move.current
    verdicts = cluster.alter_reassignments(back) if back else {}
    return {partition: error for partition, error in verdicts.items() if error is not None}


def _move_back_between_log_dirs(
    cluster: ClusterPort, moves: Iterable[Move], seen: Observation
) -> None:
    """A log-dir move is cancelled by asking for the dir that the replica is in now."""
    back = {}
    for move in moves:
        for replica, wanted in wanted_log_dirs(move).items():
            if seen.future_log_dirs.get(replica) == wanted and replica in seen.log_dirs:
                back[ReplicaId(*replica)] = seen.log_dirs[replica]
    if back:
        cluster.alter_replica_log_dirs(back)
