"""Free space on disks for the copies, at every moment of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, LogDir, LogDirKey
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.planning.model.packing import pack
from rehome.planning.model.volumes import LogDirSize, Volume, volumes_of


@dataclass
class _Incoming:
    """What comes to one broker, in bytes.

    :param free: size and move of each copy whose log dir the broker chooses.
    :param by_log_dir: log dir → bytes of the copies that the plan sends there by name.
    """

    free: list[tuple[int, Move]] = field(default_factory=list)
    by_log_dir: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(size for size, _ in self.free) + self.by_log_dir.total()


def disk_findings(
    plan: Plan, now: ClusterState, kept_free: Callable[[BrokerId], float]
) -> Iterator[TypedFinding]:
    """Brokers, and log dirs that the plan names, that cannot hold what comes.

    The worst moment is assumed, whatever the order of moves and the number of slots: every
    incoming copy is complete and no outgoing one is deleted yet. A replica lies in one log dir as
    a whole, and log dirs on one volume count once.

    :param kept_free: the part of a broker's log dirs that stays free.
    """
    incoming = _incoming(plan, now)
    volumes = _volumes(now.log_dirs.value)
    for broker, coming in sorted(incoming.items()):
        if volumes.get(broker):  # the check of brokers reports those without an open log dir
            yield from _broker_findings(broker, coming, volumes[broker], kept_free(broker))


def _incoming(plan: Plan, now: ClusterState) -> dict[BrokerId, _Incoming]:
    """What each broker receives."""
    incoming: dict[BrokerId, _Incoming] = {}
    for move in plan.moves:
        paths = move.target_log_dirs or (ANY_LOG_DIR,) * len(move.target)
        before = dict(zip(move.current, move.current_log_dirs, strict=False))
        for broker, path in zip(move.target, paths, strict=True):
            moves_dir = path not in (ANY_LOG_DIR, before.get(broker))
            if broker not in move.adding and not moves_dir:
                continue
            coming = incoming.setdefault(broker, _Incoming())
            if path == ANY_LOG_DIR:
                coming.free.append((now.size_bytes(move), move))
            else:
                coming.by_log_dir[path] += now.size_bytes(move)
    return incoming


def _volumes(log_dirs: Sequence[LogDir]) -> dict[BrokerId, list[Volume]]:
    """The volumes of each broker that take replicas; brokers before 3.3 report no sizes."""
    disks = [
        LogDirSize(d.broker, d.total_bytes, d.usable_bytes, d.path, not d.cordoned)
        for d in log_dirs
        if d.error is None and d.total_bytes is not None and d.usable_bytes is not None
    ]
    volumes_by_broker: dict[BrokerId, list[Volume]] = {}
    for volume in volumes_of(disks, lambda: _bytes_held(log_dirs)):
        if volume.paths:
            volumes_by_broker.setdefault(volume.broker, []).append(volume)
    return volumes_by_broker


def _bytes_held(log_dirs: Sequence[LogDir]) -> dict[LogDirKey, int]:
    return {
        (log_dir.broker, log_dir.path): sum(r.size_bytes for r in log_dir.replicas.values())
        for log_dir in log_dirs
    }


def _broker_findings(
    broker: BrokerId, coming: _Incoming, volumes: Sequence[Volume], min_free: float
) -> Iterator[TypedFinding]:
    free_bytes = [volume.headroom_bytes(min_free) for volume in volumes]
    subject, needed = f"broker {broker}", coming.total
    left = []
    for volume, usable in zip(volumes, free_bytes, strict=True):
        paths = [path for path in volume.paths if coming.by_log_dir[path]]
        here = sum(coming.by_log_dir[path] for path in paths)
        left.append(max(0, usable - here))
        if here > usable:
            yield _too_little(f"{subject}, {', '.join(paths)}", here, usable)
    if needed > sum(free_bytes):
        yield _too_little(subject, needed, sum(free_bytes))
        return
    lost = _largest_misfit(coming.free, left)
    if lost:
        size, move = lost
        yield TypedFinding(
            *(FoundKind.FITS_INTO_NO_LOG_DIR, subject),
            partitions=(str(move.partition),),
            size_bytes=size,
            usable_bytes=tuple(free_bytes),
        )
    elif (coming_free := sum(size for size, _ in coming.free)) > min(left):
        about = FoundKind.MAY_FILL_LOG_DIR, subject
        yield TypedFinding(*about, size_bytes=coming_free, usable_bytes=(min(left),))


def _largest_misfit(
    free: Sequence[tuple[int, Move]], free_bytes: Sequence[int]
) -> tuple[int, Move] | None:
    """The largest copy that fits into no log dir together with the others."""
    sizes = np.array([size for size, _ in free], np.int64)
    placed = pack(np.array([free_bytes], np.int64), np.zeros(len(sizes), np.int64), sizes)
    lost = [free[at] for at in np.flatnonzero(placed < 0).tolist()]
    return max(lost, key=lambda copy: copy[0], default=None)


def _too_little(subject: str, needed: int, usable: int) -> TypedFinding:
    about = FoundKind.DISK_TOO_SMALL, subject
    return TypedFinding(*about, size_bytes=needed, usable_bytes=(usable,))
