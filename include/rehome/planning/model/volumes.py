"""Log dirs grouped into volumes: how much space each broker has, and where.

Each log dir reports the size and the free space of its whole volume. Kafka does not report which
log dirs share a volume, so that is inferred from these two numbers; docs/decisions/014-log-dirs.md
says how, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import BrokerId, LogDirKey

ALIKE_PER_TOTAL = 1000
"""A broker reads its log dirs one after the other while data is written. Two log dirs count as one
volume while their free bytes differ by less than the volume's size divided by this."""


@dataclass(frozen=True, slots=True, order=True)
class LogDirSize:
    """What a log dir that is online reports. Bytes.

    :param takes: not cordoned.
    """

    broker: BrokerId
    total_bytes: int
    usable_bytes: int
    path: str
    takes: bool = True


@dataclass(frozen=True, slots=True)
class Volume:
    """The file system that one or more log dirs of a broker lie on. Bytes.

    :param paths: its log dirs that take new replicas, ascending.
    :param others: those that are cordoned.
    """

    broker: BrokerId
    total_bytes: int
    usable_bytes: int
    paths: tuple[str, ...]
    others: tuple[str, ...] = ()

    def headroom_bytes(self, min_free_fraction: float) -> int:
        """What may still be written if ``min_free_fraction`` of the volume is to stay free."""
        return max(0, int(self.usable_bytes - min_free_fraction * self.total_bytes))


def volumes_of(
    log_dirs: Iterable[LogDirSize], bytes_by_log_dir: Callable[[], Mapping[LogDirKey, int]]
) -> list[Volume]:
    """The volumes of all brokers, ascending by broker and first path.

    Log dirs of a broker that report the same size and the same free bytes are one volume. There are
    two exceptions: their replicas are larger than the used space, or another broker has the same
    paths on separate volumes.

    :param bytes_by_log_dir: bytes of the replicas in each log dir; called only if log dirs report
        the same numbers.
    """
    groups = _by_reported_sizes(log_dirs)
    if any(len(group) > 1 for group in groups):
        stored = bytes_by_log_dir()
        groups = [part for group in groups for part in _apart_by_contents(group, stored)]
        groups = _apart_on_other_brokers(groups)
    return sorted((_volume(group) for group in groups), key=lambda v: (v.broker, v.paths, v.others))


def disks_of(snapshot: Snapshot) -> tuple[dict[BrokerId, bool], dict[BrokerId, list[Volume]]]:
    """Per broker: whether any of its log dirs takes new replicas, and its volumes. A broker that
    does not report the size of every online log dir has no volumes here.
    """
    takes = dict.fromkeys(snapshot.log_dirs.column("broker").to_pylist(), False)
    sizes: list[LogDirSize] = []
    unknown: set[BrokerId] = set()
    for row in snapshot.log_dirs.to_pylist():
        if row["offline"]:
            continue
        broker, total, free = row["broker"], row["total_bytes"], row["usable_bytes"]
        takes[broker] |= not row["cordoned"]
        if total is None or total < 0 or free is None or free < 0:
            unknown.add(broker)
        else:
            sizes.append(LogDirSize(broker, total, free, row["log_dir"], not row["cordoned"]))
    volumes: dict[BrokerId, list[Volume]] = {}
    reported = (size for size in sizes if size.broker not in unknown)
    for volume in volumes_of(reported, lambda: _held_bytes(snapshot)):
        volumes.setdefault(volume.broker, []).append(volume)
    return takes, volumes


def _held_bytes(snapshot: Snapshot) -> dict[LogDirKey, int]:
    table = snapshot.replicas.select(["broker", "log_dir", "size_bytes"])
    sums = table.group_by(["broker", "log_dir"]).aggregate([("size_bytes", "sum")])
    columns = (sums.column(name).to_pylist() for name in ("broker", "log_dir", "size_bytes_sum"))
    return {(broker, path): size or 0 for broker, path, size in zip(*columns, strict=True)}


def _by_reported_sizes(log_dirs: Iterable[LogDirSize]) -> list[list[LogDirSize]]:
    groups: list[list[LogDirSize]] = []
    for _, of_size in groupby(sorted(log_dirs), attrgetter("broker", "total_bytes")):
        before: LogDirSize | None = None
        for log_dir in of_size:
            if before is None or not _alike(before, log_dir):
                groups.append([])
            groups[-1].append(log_dir)
            before = log_dir
    return groups


def _alike(one: LogDirSize, other: LogDirSize) -> bool:
    apart = other.usable_bytes - one.usable_bytes
    return apart == 0 or apart * ALIKE_PER_TOTAL < one.total_bytes


def _apart_by_contents(
    group: list[LogDirSize], bytes_by_log_dir: Mapping[LogDirKey, int]
) -> list[list[LogDirSize]]:
    """Split the group if one volume could not hold the replicas that lie in its log dirs."""
    used = group[0].total_bytes - min(log_dir.usable_bytes for log_dir in group)
    lies_there = sum(bytes_by_log_dir.get((log_dir.broker, log_dir.path), 0) for log_dir in group)
    return [[log_dir] for log_dir in group] if lies_there > used else [group]


def _apart_on_other_brokers(groups: list[list[LogDirSize]]) -> list[list[LogDirSize]]:
    """Split groups whose paths lie on separate volumes on another broker: empty disks report the
    same numbers although they are separate.
    """
    on: dict[BrokerId, dict[str, int]] = {}
    for number, group in enumerate(groups):
        for log_dir in group:
            on.setdefault(log_dir.broker, {})[log_dir.path] = number
    apart_by_paths: dict[tuple[str, ...], bool] = {}

    def apart(paths: tuple[str, ...]) -> bool:
        if paths not in apart_by_paths:
            apart_by_paths[paths] = any(
                len({volume.get(path) for path in paths} - {None}) == len(paths)
                for volume in on.values()
            )
        return apart_by_paths[paths]

    parts: list[list[LogDirSize]] = []
    for group in groups:
        paths = tuple(sorted(log_dir.path for log_dir in group))
        if len(group) > 1 and apart(paths):
            parts += [[log_dir] for log_dir in group]
        else:
            parts.append(group)
    return parts


def _volume(group: list[LogDirSize]) -> Volume:
    return Volume(
        broker=group[0].broker,
        total_bytes=group[0].total_bytes,
        usable_bytes=min(log_dir.usable_bytes for log_dir in group),
        paths=tuple(sorted(log_dir.path for log_dir in group if log_dir.takes)),
        others=tuple(sorted(log_dir.path for log_dir in group if not log_dir.takes)),
    )
