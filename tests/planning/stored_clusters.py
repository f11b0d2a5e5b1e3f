"""Snapshots of brokers with several log dirs, written down dir by dir."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from rehome.cluster.snapshot.model import LOG_DIRS, REPLICAS, Snapshot
from rehome.domain.kafka import ANY_LOG_DIR, TopicPartition
from rehome.domain.plan.plan import Plan
from tests.planning.clusters import cluster

LogDirKey = tuple[int, str]


@dataclass(frozen=True)
class Stored:
    """Log dirs of brokers and the replicas in them.

    :param holds: (broker, path) → partition number of topic ``t`` → size of that replica.
    :param disks: (broker, path) → (total, usable) bytes; unknown where left out.
    :param moving: (partition number, broker) → (log dir it is going to, bytes there already).
    """

    holds: Mapping[LogDirKey, Mapping[int, int | None]]
    disks: Mapping[LogDirKey, tuple[int, int]] = field(default_factory=dict)
    cordoned: frozenset[LogDirKey] = frozenset()
    offline: frozenset[LogDirKey] = frozenset()
    moving: Mapping[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    racks: Mapping[int, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        """As the cluster would be read; brokers of a partition are listed by id."""
        lies = {(p, b): path for (b, path), sizes in self.holds.items() for p in sizes}
        size = {(p, b): n for (b, _), sizes in self.holds.items() for p, n in sizes.items()}
        numbers = sorted({p for p, _ in lies})
        assert numbers == list(range(len(numbers)))
        rows = [sorted(b for q, b in lies if q == p) for p in numbers]
        brokers = {b: self.racks.get(b, "") for b, _ in sorted(self.holds)}
        plain = cluster(brokers, rows, **self.options).snapshot()
        replicas = plain.replicas.to_pylist()
        for row in replicas:
            key = row["partition"], row["broker"]
            row["log_dir"], row["size_bytes"] = lies[key], size[key]
            row["future_log_dir"], row["future_size_bytes"] = self.moving.get(key, (None, None))
        return replace(
            plain,
            log_dirs=pa.Table.from_pylist([self._dir(place) for place in self.holds], LOG_DIRS),
            replicas=pa.Table.from_pylist(replicas, REPLICAS),
        )

    def _dir(self, place: LogDirKey) -> dict[str, Any]:
        total, usable = self.disks.get(place, (None, None))
        return {
            "broker": place[0],
            "log_dir": place[1],
            "total_bytes": total,
            "usable_bytes": usable,
            "offline": place in self.offline,
            "cordoned": place in self.cordoned,
            "stray_replicas": 0,
        }

    def after(self, plan: Plan) -> Stored:
        """Once the plan is carried out."""
        holds = {place: dict(sizes) for place, sizes in self.holds.items()}
        for move in plan.moves:
            assert move.current == move.target
            assert len(move.current_log_dirs) == len(move.target_log_dirs) == len(move.target)
            ways = zip(move.target, move.current_log_dirs, move.target_log_dirs, strict=True)
            for broker, old, new in ways:
                if new != ANY_LOG_DIR:
                    number = move.partition.partition
                    holds[broker, new][number] = holds[broker, old].pop(number)
        return replace(self, holds=holds)

    def loads(self) -> dict[LogDirKey, int]:
        """Bytes in each log dir."""
        return {place: sum(n or 0 for n in sizes.values()) for place, sizes in self.holds.items()}


def partition(number: int) -> TopicPartition:
    """Of topic ``t``."""
    return TopicPartition("t", number)
