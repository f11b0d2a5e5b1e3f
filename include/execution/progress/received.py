"""What copies have received between two polls: traffic, whatever becomes of it later. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from include.domain.kafka import ReplicaId
from include.domain.plan.move import Move
from include.domain.run.observation import Observation
from include.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from include.execution.observation.log_dir_copies import wanted_log_dirs
from include.execution.observation.move_status import relocating


def received_bytes(
    history: Collection[ProgressSample],
    moves: Collection[Move],
    seen: Observation,
    before: Mapping[ReplicaId, ReplicaStatus],
) -> int | None:
    """Since the plan's start: what the poll before had, and what each copy has grown by since.

    A copy that is smaller than before was cut by retention, or has begun anew: that is no traffic,
    and what comes after is. What a broker does not tell now, it tells at a later poll.

    :param history: earlier samples, oldest first; none = this is the first.
    :param moves: in flight at this poll.
    :param before: replicas that were in flight at the poll before: of others, all is new.
    :returns: None = not known: an earlier Rehome has polled the plan.
    """
    so_far = 0
    for sample in history:
        if sample.received_bytes is None:
            return None
        so_far = sample.received_bytes
    grown = (max(0, size - was) for move in moves for size, was in _copies(move, seen, before))
    return so_far + sum(grown)


def _copies(
    move: Move, seen: Observation, before: Mapping[ReplicaId, ReplicaStatus]
) -> Iterator[tuple[int, int]]:
    """Of each copy whose size is known: that size, and the one before."""
    for broker in move.adding:
        replica = ReplicaId(*move.partition, broker)
        size, known = seen.sizes.get(replica), before.get(replica)
        if size is not None:
            yield size, (known.size_bytes or 0) if known else 0
    for broker in relocating(move):
        replica = ReplicaId(*move.partition, broker)
        future, known = seen.future_sizes.get(replica), before.get(replica)
        begun = known is not None and known.state is ReplicaState.BEHIND
        was = (known.size_bytes or 0) if known is not None and begun else 0
        if future is not None:
            yield future, was
        elif begun and seen.log_dirs.get(replica) == wanted_log_dirs(move).get(replica):
            yield seen.sizes.get(replica, 0), was  # it has taken the old one's place
