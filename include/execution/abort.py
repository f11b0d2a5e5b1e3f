"""Cancelling what is ours, and only that; with the order of replicas that a cancel loses."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from include.cluster.model import (
    BrokerError,
    BrokerId,
    PartitionState,
    TopicPartition,
)
from include.cluster.port import ClusterPort
from include.execution.log_dir_copies import (
    Place,
    all_there,
    places,
    stop_copies,
    wanted_log_dirs,
)
from include.execution.model import MoveState, Observation, PlanState
from include.execution.observe import observe
from include.execution.outcome import recreated
from include.ledger.database import utc_now
from include.ledger.store import Ledger
from include.planning.plan import Move, Plan

NO_REASSIGNMENT_IN_PROGRESS = 85
UNKNOWN_TOPIC_OR_PARTITION = 3
SETTLED_TIMEOUT_S = 10.0
SETTLED_POLL_S = 0.1


@dataclass(frozen=True)
class Cancelled:
    """What became of moves that were to be cancelled.

    :param cancelled: stopped; their old replicas are back in the old order.
    :param ended: found to have ended otherwise: done, superseded, or gone with their topic.
    :param errors: still in flight, because the controller, or a broker, refused.
    :param owed: copies between log dirs of a broker that is not alive: it goes on when it
        returns. Their moves stay admitted until ``stop_owed_copies`` takes them back.
    """

    cancelled: tuple[TopicPartition, ...] = ()
    ended: Mapping[TopicPartition, MoveState] = field(default_factory=dict)
    errors: Mapping[TopicPartition, BrokerError] = field(default_factory=dict)
    owed: Mapping[TopicPartition, BrokerError] = field(default_factory=dict)

    @property
    def left(self) -> str:
        """What could not be cancelled, as a part of a sentence; "" = nothing."""
        left = sorted({**self.errors, **self.owed}.items())
        return ", ".join(f"{partition}: {error}" for partition, error in left)


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
    if result.left:
        cause = f"{cause}; could not be cancelled and goes on: {result.left}"
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

    :param then: what cancelled moves become: CANCELLED, or PENDING to be taken up again.
    """
    if not moves:
        return Cancelled()
    seen = observe(cluster, moves, utc_now())
    ended = {m.partition: state for m in moves if (state := _ended_otherwise(m, seen))}
    left = [move for move in moves if move.partition not in ended]
    errors, idle = _cancel(cluster, left)
    ended |= {
        partition: MoveState.FAILED
        for partition, error in errors.items()
        if error.code == UNKNOWN_TOPIC_OR_PARTITION
    }
    errors = {partition: error for partition, error in errors.items() if partition not in ended}
    cancelled = [m for m in left if m.partition not in errors and m.partition not in ended]
    ours = [move for move in moves if ended.get(move.partition) is not MoveState.FAILED]
    copies = stop_copies(cluster, ours, seen)
    meanwhile, unclear = _ended_meanwhile(cluster, [m for m in cancelled if m.partition in idle])
    errors |= {**unclear, **copies.errors}
    back = [m for m in cancelled if m.partition not in meanwhile and m.partition not in unclear]
    errors |= _restore_order(cluster, back)
    ended |= _arrived_by_now(cancelled, meanwhile, copies.arrived)
    left_over = {*errors, *copies.owed}
    result = Cancelled(
        tuple(m.partition for m in cancelled if m.partition not in {*left_over, *ended}),
        {partition: state for partition, state in ended.items() if partition not in left_over},
        errors,
        copies.owed,
    )
    _record(plan_id, ledger, result, cause, then)
    return result


def _arrived_by_now(
    cancelled: Collection[Move],
    meanwhile: Mapping[TopicPartition, MoveState],
    in_log_dirs: Collection[TopicPartition],
) -> dict[TopicPartition, MoveState]:
    """Moves that ended before they could be cancelled; none is done without its log dirs."""
    short = {m.partition for m in cancelled if wanted_log_dirs(m)} - set(in_log_dirs)
    ended = {p: s for p, s in meanwhile.items() if s is not MoveState.DONE or p not in short}
    stayed = {move.partition for move in cancelled if move.target == move.current}
    return ended | dict.fromkeys(stayed & set(in_log_dirs), MoveState.DONE)


def _record(plan_id: str, ledger: Ledger, result: Cancelled, cause: str, then: MoveState) -> None:
    for partition in result.cancelled:
        ledger.settle(plan_id, partition, then, cause)
    for partition, state in result.ended.items():
        ledger.settle(plan_id, partition, state, f"found when cancelling: {cause}")
    for partition, error in {**result.errors, **result.owed}.items():
        ledger.add_event("not cancelled", f"{partition}: {error}", plan_id=plan_id)


def _ended_otherwise(move: Move, seen: Observation) -> MoveState | None:
    state = seen.partitions.get(move.partition)
    if state is None or recreated(move, seen):
        return MoveState.FAILED
    entry = seen.ongoing.get(move.partition)
    if entry is not None:
        return None if entry.target == move.target else MoveState.SUPERSEDED
    if state.replicas == move.target and all_there(move, seen):
        return MoveState.DONE if _arrived(move, state) or wanted_log_dirs(move) else None
    if Place.TAKEN in places(move, seen).values():
        return MoveState.SUPERSEDED
    if set(state.replicas) - set(move.current) - set(move.target):
        return MoveState.SUPERSEDED
    return None


def _arrived(move: Move, state: PartitionState) -> bool:
    return state.replicas == move.target != move.current


def _cancel(
    cluster: ClusterPort, moves: Collection[Move]
) -> tuple[dict[TopicPartition, BrokerError], set[TopicPartition]]:
    """Cancel every one, also what is not listed: it may have been sent a moment ago.

    :returns: what was refused, and the partitions that had nothing in flight (any more).
    """
    if not moves:
        return {}, set()
    verdicts = cluster.alter_reassignments({move.partition: None for move in moves})
    errors = {partition: error for partition, error in verdicts.items() if error is not None}
    idle = {p for p, error in errors.items() if error.code == NO_REASSIGNMENT_IN_PROGRESS}
    return {p: error for p, error in errors.items() if p not in idle}, idle


def _ended_meanwhile(
    cluster: ClusterPort, idle: Collection[Move]
) -> tuple[dict[TopicPartition, MoveState], dict[TopicPartition, BrokerError]]:
    """Moves that ended between the look and the cancel: their replicas must stay where they are.

    Putting the old ones back would be another reassignment, with all its data, that nobody
    watches or throttles. Metadata may be behind the controller, so it is given time.

    :returns: what they ended as; and those of which the brokers still show no end.
    """
    ended: dict[TopicPartition, MoveState] = {}
    left, deadline = list(idle), time.monotonic() + SETTLED_TIMEOUT_S
    while left:
        topics = cluster.describe_topics({move.partition.topic for move in left})
        unclear = {}
        for move in left:
            topic = topics.get(move.partition.topic)
            state = topic.partitions.get(move.partition.partition) if topic else None
            if state is None or _is_back(move, state):
                continue
            if set(state.replicas) == {*move.current, *move.target} and not _arrived(move, state):
                unclear[move.partition] = _unclear(state)
            else:
                done = _arrived(move, state)
                ended[move.partition] = MoveState.DONE if done else MoveState.SUPERSEDED
        if not unclear or time.monotonic() > deadline:
            return ended, unclear
        left = [move for move in left if move.partition in unclear]
        time.sleep(SETTLED_POLL_S)
    return ended, {}


def _is_back(move: Move, state: PartitionState) -> bool:
    return set(state.replicas) == set(move.current) and not _arrived(move, state)


def _unclear(state: PartitionState) -> BrokerError:
    shown = f"nothing is in flight, but its replicas read {list(state.replicas)}"
    return BrokerError(NO_REASSIGNMENT_IN_PROGRESS, "NO_REASSIGNMENT_IN_PROGRESS", shown)


def _restore_order(
    cluster: ClusterPort, moves: Iterable[Move]
) -> dict[TopicPartition, BrokerError]:
    """Put the preferred leader first again. The same set in another order moves no data."""
    topics = cluster.describe_topics({move.partition.topic for move in moves})
    back: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    for move in moves:
        topic = topics.get(move.partition.topic)
        state = topic.partitions.get(move.partition.partition) if topic else None
        if state is not None and state.replicas != move.current:
            back[move.partition] = move.current
    verdicts = cluster.alter_reassignments(back) if back else {}
    return {partition: error for partition, error in verdicts.items() if error is not None}
