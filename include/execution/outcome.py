"""What has become of a move, by what the cluster shows: the settling half of `decide`. Pure."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

from include.cluster.model import BrokerId, PartitionState, ReplicaId
from include.execution.model import Observation
from include.planning.plan import ANY_LOG_DIR, Move


class Fate(enum.Enum):
    """What an observation says about a move."""

    UNTOUCHED = enum.auto()  # the partition is as it was planned from
    IN_FLIGHT = enum.auto()
    MISPLACED = enum.auto()  # replicas are right, one sits in another log dir than wanted
    DONE = enum.auto()
    UNDONE = enum.auto()  # it was in flight, and the old replicas are back
    SUPERSEDED = enum.auto()  # somebody else reassigned the partition
    GONE = enum.auto()  # topic or partition do not exist any more


def fate(
    move: Move, seen: Observation, now: datetime, *, sent_at: datetime | None, grace_s: float
) -> tuple[Fate, str]:
    """What became of a move, and the reason in words.

    The controller's list of reassignments is true at once; metadata comes from some broker
    that may be behind it, so for ``grace_s`` after the start only the list is believed.

    :param sent_at: when the controller accepted the move; None = not known to have.
    """
    entry = seen.ongoing.get(move.partition)
    if entry is not None:
        if entry.target == move.target:
            return Fate.IN_FLIGHT, ""
        return Fate.SUPERSEDED, f"somebody else is reassigning it to {list(entry.target)}"
    state = seen.partitions.get(move.partition)
    if state is None:
        missing = move.partition.topic in seen.topics_missing
        return Fate.GONE, f"{'topic' if missing else 'partition'} does not exist any more"
    if state.replicas == move.target:
        return _arrived(move, state, seen)
    if sent_at is not None and now - sent_at < timedelta(seconds=grace_s):
        return Fate.IN_FLIGHT, ""
    return _elsewhere(move, state, sent_at)


def _arrived(move: Move, state: PartitionState, seen: Observation) -> tuple[Fate, str]:
    outside = sorted(set(move.target) - state.isr)
    if outside:
        return Fate.IN_FLIGHT, f"replicas on {outside} are not in the ISR"
    if any(replica in seen.future_log_dirs for replica in wanted_log_dirs(move)):
        return Fate.IN_FLIGHT, "a replica is moving between log dirs"
    if misplaced(move, seen):
        return Fate.MISPLACED, ""
    unknown = [replica for replica in wanted_log_dirs(move) if replica not in seen.log_dirs]
    if unknown:
        return Fate.IN_FLIGHT, f"log dir on broker {unknown[0].broker} is not known"
    return Fate.DONE, ""


def _elsewhere(move: Move, state: PartitionState, sent_at: datetime | None) -> tuple[Fate, str]:
    replicas = set(state.replicas)
    if replicas == set(move.current):
        if sent_at is None:
            return Fate.UNTOUCHED, ""
        return Fate.UNDONE, "somebody else cancelled it"
    if replicas == set(move.current) | set(move.target):
        return Fate.IN_FLIGHT, "metadata is behind the controller"
    return Fate.SUPERSEDED, f"its replicas are {list(state.replicas)}, not {list(move.current)}"


def wanted_log_dirs(move: Move) -> dict[ReplicaId, str]:
    """The log dir of each target replica that the plan names one for."""
    return {
        ReplicaId(*move.partition, broker): log_dir
        for broker, log_dir in zip(move.target, move.target_log_dirs, strict=False)
        if log_dir != ANY_LOG_DIR
    }


def misplaced(move: Move, seen: Observation) -> dict[ReplicaId, str]:
    """Replicas that exist in another log dir than wanted, with the dir that is wanted."""
    return {
        replica: log_dir
        for replica, log_dir in wanted_log_dirs(move).items()
        if seen.log_dirs.get(replica, log_dir) != log_dir
        and seen.future_log_dirs.get(replica) != log_dir
    }


def relocating(move: Move) -> tuple[BrokerId, ...]:
    """Brokers that keep their replica and move it to another log dir of theirs."""
    return move.relocating


def bytes_to_copy(move: Move) -> int:
    """Bytes that are written anew: over the network or between log dirs."""
    return move.size_bytes * (len(move.adding) + len(relocating(move)))
