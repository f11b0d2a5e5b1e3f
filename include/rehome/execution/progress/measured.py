"""How far a plan is as a whole: bytes in place, moves, rate. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from rehome.domain.kafka import BrokerId, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample, ReplicaStatus
from rehome.domain.run.states import MoveState
from rehome.execution.observation.move_status import relocating


def measure(
    plan: Plan,
    view: LedgerView,
    observation: Observation,
    statuses: Collection[ReplicaStatus],
) -> ProgressSample:
    """The plan as a whole. Moves that failed or were cancelled count to neither side.

    A move that is done counts with what its copies held when it was settled; as planned, where an
    earlier Rehome has settled it. So bytes done fall only where sources shrink, or copies are taken
    back.
    """
    by_replica = {status.replica: status for status in statuses}
    listed = {p: state for p, state in view.moves.items() if state is not MoveState.PENDING}
    sums = Counter({state: move_sums.bytes_to_copy for state, move_sums in view.settled.items()})
    counts = Counter({state: move_sums.moves for state, move_sums in view.settled.items()})
    at_rest = view.done.in_place + view.done.not_recorded
    copied = whole = 0
    grown, shrunk = view.done.grown, view.done.shrunk
    for partition, state in listed.items():
        move = plan.by_partition[partition]
        sums[state] += move.bytes_to_copy
        counts[state] += 1
        if state is MoveState.ADMITTED:
            move_copied, move_whole = _in_flight_bytes(move, observation, by_replica)
            copied, whole = copied + move_copied, whole + move_whole
            grown += max(0, move_whole - move.bytes_to_copy)
            shrunk += max(0, move.bytes_to_copy - move_whole)
    done = at_rest + copied
    recorded = not view.done.not_recorded
    pending = plan.bytes_to_copy - sums.total()
    return ProgressSample(
        sampled_at=observation.taken_at,
        bytes_done=done,
        bytes_total=at_rest + pending + whole,
        moves_done=counts[MoveState.DONE],
        moves_total=len(plan.moves),
        in_flight=counts[MoveState.ADMITTED],
        messages_behind=sum(status.messages_behind or 0 for status in statuses),
        grown_bytes=grown if recorded else None,
        shrunk_bytes=shrunk if recorded else None,
    )


def _in_flight_bytes(
    move: Move, observation: Observation, statuses: Mapping[ReplicaId, ReplicaStatus]
) -> tuple[int, int]:
    copied = whole = 0
    for broker in (*move.adding, *relocating(move)):
        replica = ReplicaId(*move.partition, broker)
        source = source_size(replica, observation, across=broker not in move.adding)
        new = _new_bytes(broker, move, statuses.get(replica), observation)
        size = max(move.size_bytes, new) if source is None else source
        whole += size
        copied += min(size, new)
    return copied, whole


def _new_bytes(
    broker: BrokerId, move: Move, status: ReplicaStatus | None, observation: Observation
) -> int:
    if status is None or status.size_bytes is None or _is_gone(status.replica, observation):
        return 0
    if broker in move.adding or status.replica in observation.future_sizes:
        return status.size_bytes
    # A log-dir move without a future copy has either not begun or just ended.
    path = dict(zip(move.target, move.target_log_dirs, strict=False)).get(broker)
    return status.size_bytes if observation.log_dirs.get(status.replica) == path else 0


def _is_gone(replica: ReplicaId, observation: Observation) -> bool:
    """Whether nothing is there now of what was read before: with its topic, or its log dir."""
    if replica.topic in observation.topics_missing:
        return True
    unread = replica.topic in observation.unreadable or replica.broker in observation.missing
    if unread or replica.broker not in observation.live_brokers:
        return False
    return replica not in observation.sizes and replica not in observation.future_sizes


def source_size(replica: ReplicaId, observation: Observation, *, across: bool) -> int | None:
    """Of what a copy is made from: the leader's replica, or the one in the old log dir.

    :param across: the move copies this replica between log dirs of its broker.
    """
    if across and replica in observation.future_sizes:
        return observation.sizes.get(replica)
    state = observation.partitions.get(replica.topic_partition)
    if state is None or state.leader is None:
        return None
    return observation.sizes.get(ReplicaId(*replica.topic_partition, state.leader))
