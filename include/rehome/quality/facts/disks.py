"""Headroom on the brokers' disks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import BrokerId, LogDirKey

Row = Mapping[str, Any]

NOISE = 1000
"""Log dirs of one volume report their free bytes at different moments. They count as equal if they
differ by less than the volume's size divided by this.
"""


@dataclass(frozen=True)
class Disks:
    """Log dirs by broker and path.

    :param headroom: bytes that may still be written to the volume of a log dir that takes replicas;
        None = the broker does not report it.
    :param first: a log dir → the first one on its volume that takes replicas.
    :param capacity: total bytes per broker of the volumes with online log dirs; brokers that do not
        report all of them are absent.
    :param free: bytes per broker that may be written to them now.
    :param closed: brokers without a log dir that takes replicas.
    """

    headroom: dict[LogDirKey, int | None]
    first: dict[LogDirKey, LogDirKey]
    capacity: dict[BrokerId, int]
    free: dict[BrokerId, int]
    closed: frozenset[BrokerId]

    @classmethod
    def of(cls, snapshot: Snapshot, kept_free: Callable[[BrokerId], float]) -> Disks:
        """The disks of a snapshot; ``kept_free`` is the fraction of a broker's log dirs that stays
        free.
        """
        rows = snapshot.log_dirs.to_pylist()
        online = [row for row in rows if not row["offline"]]
        silent = {row["broker"] for row in online if not _reports_size(row)}
        headroom: dict[LogDirKey, int | None] = {
            _key_of(row): None for row in online if row["broker"] in silent and not row["cordoned"]
        }
        first = {place: place for place in headroom}
        capacity: Counter[BrokerId] = Counter()
        free_bytes: Counter[BrokerId] = Counter()
        rows_with_size = [row for row in online if row["broker"] not in silent]
        for volume in _volumes(rows_with_size, snapshot):
            capacity[volume[0]["broker"]] += volume[0]["total_bytes"]
            takes = sorted(_key_of(row) for row in volume if not row["cordoned"])
            free = min(row["usable_bytes"] for row in volume)
            free_bytes[volume[0]["broker"]] += free
            kept = volume[0]["total_bytes"] * kept_free(volume[0]["broker"])
            for place in takes:
                headroom[place] = max(0, int(free - kept))
                first[place] = takes[0]
        return cls(
            headroom=headroom,
            first=first,
            capacity=dict(capacity),
            free=dict(free_bytes),
            closed=frozenset({row["broker"] for row in rows} - {broker for broker, _ in headroom}),
        )

    @property
    def usable(self) -> frozenset[LogDirKey]:
        """Log dirs that are neither offline nor cordoned."""
        return frozenset(self.headroom)

    def headrooms_of_brokers(self) -> dict[BrokerId, dict[LogDirKey, int] | None]:
        """Per broker, the headroom of each volume; None if it does not report it. Brokers without a
        log dir are absent.
        """
        headrooms: dict[BrokerId, dict[LogDirKey, int] | None] = {
            broker: {} for broker in self.closed
        }
        for place, here in self.headroom.items():
            volumes = headrooms.setdefault(place[0], {})
            if here is None:
                headrooms[place[0]] = None
            elif volumes is not None and self.first[place] == place:
                volumes[place] = here
        return headrooms


def _volumes(rows: Sequence[Row], snapshot: Snapshot) -> Iterator[list[Row]]:
    """Log dirs grouped by volume. Log dirs of a broker that report the same numbers share a volume,
    unless their replicas are larger than the used space, or another broker has the same paths on
    separate volumes.
    """
    brokers: dict[BrokerId, list[Row]] = {}
    for row in rows:
        brokers.setdefault(row["broker"], []).append(row)
    twins = {
        (broker, one["log_dir"], other["log_dir"])
        for broker, mine in brokers.items()
        for one, other in combinations(sorted(mine, key=_key_of), 2)
        if _same_numbers(one, other)
    }
    bytes_by_log_dir = _held_bytes(snapshot) if twins else Counter()
    volumes_by_broker = {broker: list(_groups_of(mine, twins)) for broker, mine in brokers.items()}
    for broker, volumes in volumes_by_broker.items():
        volumes_by_broker[broker] = [
            part for volume in volumes for part in _split_by_contents(volume, bytes_by_log_dir)
        ]
    seen_apart: set[tuple[str, ...]] = set()
    for broker in {broker for broker, *_ in twins}:
        for volume in volumes_by_broker[broker]:
            paths = tuple(row["log_dir"] for row in volume)
            if len(paths) > 1 and any(
                _has_separate_volumes(other, paths) for other in volumes_by_broker.values()
            ):
                seen_apart.add(paths)
    for volumes in volumes_by_broker.values():
        for volume in volumes:
            paths = tuple(row["log_dir"] for row in volume)
            yield from ([row] for row in volume) if paths in seen_apart else [volume]


def _same_numbers(one: Row, other: Row) -> bool:
    apart: int = abs(one["usable_bytes"] - other["usable_bytes"])
    total: int = one["total_bytes"]
    return total == other["total_bytes"] and (apart == 0 or apart * NOISE < total)


def _groups_of(rows: Sequence[Row], twins: set[tuple[BrokerId, str, str]]) -> Iterator[list[Row]]:
    """Group a broker's log dirs by the transitive closure of "reports the same"."""
    left = sorted(rows, key=_key_of)
    while left:
        volume, queue = [], [left.pop(0)]
        while queue:
            row = queue.pop()
            volume.append(row)
            alike = [other for other in left if _twins(row, other, twins)]
            left = [other for other in left if other not in alike]
            queue += alike
        yield sorted(volume, key=_key_of)


def _twins(one: Row, other: Row, twins: set[tuple[BrokerId, str, str]]) -> bool:
    return (one["broker"], *sorted((one["log_dir"], other["log_dir"]))) in twins


def _split_by_contents(
    volume: list[Row], bytes_by_log_dir: Mapping[LogDirKey, int]
) -> list[list[Row]]:
    used = volume[0]["total_bytes"] - min(row["usable_bytes"] for row in volume)
    return (
        [[row] for row in volume]
        if sum(bytes_by_log_dir[_key_of(row)] for row in volume) > used
        else [volume]
    )


def _has_separate_volumes(volumes: Sequence[Sequence[Row]], paths: Sequence[str]) -> bool:
    """Whether a broker has all these log dirs on separate volumes."""
    on = {row["log_dir"]: number for number, rows in enumerate(volumes) for row in rows}
    return all(path in on for path in paths) and len({on[path] for path in paths}) == len(paths)


def _held_bytes(snapshot: Snapshot) -> Counter[LogDirKey]:
    table = snapshot.replicas.group_by(["broker", "log_dir"]).aggregate([("size_bytes", "sum")])
    bytes_by_log_dir: Counter[LogDirKey] = Counter()
    for row in table.to_pylist():
        bytes_by_log_dir[row["broker"], row["log_dir"]] = row["size_bytes_sum"] or 0
    return bytes_by_log_dir


def _key_of(row: Row) -> LogDirKey:
    return row["broker"], row["log_dir"]


def _reports_size(row: Row) -> bool:
    return all(row[name] is not None and row[name] >= 0 for name in ("total_bytes", "usable_bytes"))
