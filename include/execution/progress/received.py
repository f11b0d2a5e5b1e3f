"""What copies receive between two polls: traffic, whatever becomes of it later. Pure.

The pace of the plan, of its brokers and of single partitions follows from the same gains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from include.domain.kafka import ReplicaId
from include.domain.plan.move import Move
from include.domain.run.observation import Observation
from include.domain.run.progress import (
    PACE_POLLS,
    PACE_WINDOW,
    Gain,
    ProgressSample,
    ReplicaState,
    ReplicaStatus,
)
from include.execution.admission.fair_share import source_of
from include.execution.observation.log_dir_copies import wanted_log_dirs
from include.execution.observation.move_status import relocating

StatusesBefore = Mapping[ReplicaId, ReplicaStatus]


def with_gains(
    statuses: Collection[ReplicaStatus],
    moves: Collection[Move],
    seen: Observation,
    before: StatusesBefore,
) -> list[ReplicaStatus]:
    """The statuses of a poll, with what each copy has received at it and before.

    A copy that is smaller than before was cut by retention, or has begun anew: that is no traffic,
    and what comes after is. What a broker does not tell now, it tells at a later poll.

    :param moves: in flight at this poll.
    :param before: replicas that were in flight at the poll before: of others, all is new.
    """
    grown = {replica: size for move in moves for replica, size in _gains(move, seen, before)}
    sources = {move.partition: source_of(move, seen) for move in moves}
    adding = {(move.partition, broker) for move in moves for broker in move.adding}
    found = []
    for status in statuses:
        replica, size = status.replica, grown.get(status.replica)
        earlier = before[replica].gains if replica in before else ()
        gains = [gain for gain in earlier if seen.taken_at - gain.at < PACE_WINDOW]
        if size is not None:
            gains.append(Gain(seen.taken_at, size))
        network = (replica.topic_partition, replica.broker) in adding
        source = sources[replica.topic_partition] if network else replica.broker
        found.append(replace(status, gains=tuple(gains[-PACE_POLLS:]), read_from=source))
    return found


def received_bytes(
    history: Collection[ProgressSample], statuses: Collection[ReplicaStatus]
) -> int | None:
    """Since the plan's start: what the poll before had, and what each copy has received since.

    :param history: earlier samples, oldest first; none = this is the first.
    :param statuses: of this poll, with what copies have received.
    :returns: None = not known: an earlier Rehome has polled the plan.
    """
    so_far = 0
    for sample in history:
        if sample.received_bytes is None:
            return None
        so_far = sample.received_bytes
    newest = [each.gains[-1].size_bytes for each in statuses if _is_new(each)]
    return so_far + sum(newest)


def pace_samples(samples: Sequence[ProgressSample]) -> Sequence[ProgressSample]:
    """The samples over which the pace is measured: from the first one to the last.

    :param samples: oldest first; the last one is now.
    """
    recent = [each for each in samples if samples[-1].sampled_at - each.sampled_at <= PACE_WINDOW]
    return recent[-PACE_POLLS:]


def received_per_s(samples: Sequence[ProgressSample]) -> float | None:
    """What all copies have received per second; None = not known, or there is one sample only.

    :param samples: oldest first; the last one is now.
    """
    window = pace_samples(samples)
    first, last = window[0], window[-1]
    if last.received_bytes is None or first.received_bytes is None:
        return None
    seconds = (last.sampled_at - first.sampled_at).total_seconds()
    return (last.received_bytes - first.received_bytes) / seconds if seconds > 0 else None


def _is_new(status: ReplicaStatus) -> bool:
    return bool(status.gains) and status.gains[-1].at == status.status_at


def _gains(
    move: Move, seen: Observation, before: StatusesBefore
) -> Iterator[tuple[ReplicaId, int]]:
    """What the copies have received whose size is known."""
    for broker in move.adding:
        replica = ReplicaId(*move.partition, broker)
        size, known = seen.sizes.get(replica), before.get(replica)
        was = (known.size_bytes or 0) if known else 0
        if size is not None:
            yield replica, max(0, size - was)
    for broker in relocating(move):
        replica = ReplicaId(*move.partition, broker)
        future, known = seen.future_sizes.get(replica), before.get(replica)
        begun = known is not None and known.state is ReplicaState.BEHIND
        was = (known.size_bytes or 0) if known is not None and begun else 0
        if future is not None:
            yield replica, max(0, future - was)
        elif begun and seen.log_dirs.get(replica) == wanted_log_dirs(move).get(replica):
            # It has taken the old one's place.
            yield replica, max(0, seen.sizes.get(replica, 0) - was)
