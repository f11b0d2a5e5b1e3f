"""What copies receive between two polls: traffic, whatever becomes of it later. Pure.

The pace of the plan, of its brokers and of single partitions follows from the same gains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rehome.domain.kafka import ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import (
    PACE_POLLS,
    PACE_WINDOW,
    Gain,
    ProgressSample,
    ReplicaState,
    ReplicaStatus,
)
from rehome.execution.admission.fair_share import source_of
from rehome.execution.observation.log_dir_copies import wanted_log_dirs
from rehome.execution.observation.move_status import relocating

StatusesBefore = Mapping[ReplicaId, ReplicaStatus]


def gains_of(
    moves: Collection[Move], observation: Observation, before: StatusesBefore
) -> tuple[Gain, ...]:
    """What each copy has received since the poll before.

    A copy that is smaller than before was cut by retention, or has begun anew: that is no traffic,
    and what comes after is. What a broker does not tell now, it tells at a later poll.

    :param moves: in flight at this poll.
    :param before: replicas that were in flight at the poll before: of others, all is new.
    """
    return tuple(gain for move in moves for gain in _gains(move, observation, before))


def received_bytes(history: Collection[ProgressSample], gains: Collection[Gain]) -> int | None:
    """Since the plan's start: what the poll before had, and what each copy has received since.

    :param history: earlier samples, oldest first; none = this is the first.
    :param gains: of this poll.
    :returns: None = not known: an earlier Rehome has polled the plan.
    """
    so_far = 0
    for sample in history:
        if sample.received_bytes is None:
            return None
        so_far = sample.received_bytes
    return so_far + sum(gain.size_bytes or 0 for gain in gains)


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


def _gains(move: Move, observation: Observation, before: StatusesBefore) -> Iterator[Gain]:
    """Of copies that have been seen, at this poll or earlier."""
    source = source_of(move, observation)
    for broker in move.adding:
        replica = ReplicaId(*move.partition, broker)
        size, status = observation.sizes.get(replica), before.get(replica)
        was = status.size_bytes if status else None
        if size is not None:
            yield Gain(replica, source, max(0, size - (was or 0)))
        elif was is not None:
            yield Gain(replica, source, None)
    for broker in relocating(move):
        replica = ReplicaId(*move.partition, broker)
        future, status = observation.future_sizes.get(replica), before.get(replica)
        begun = status is not None and status.state is ReplicaState.BEHIND
        was = (status.size_bytes or 0) if status is not None and begun else 0
        log_dir = observation.log_dirs.get(replica)
        if future is not None:
            yield Gain(replica, broker, max(0, future - was))
        elif begun and log_dir is None:
            yield Gain(replica, broker, None)
        elif begun and log_dir == wanted_log_dirs(move).get(replica):
            # It has taken the old one's place.
            yield Gain(replica, broker, max(0, observation.sizes.get(replica, 0) - was))
