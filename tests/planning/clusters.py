"""Snapshots of made-up clusters, and what a plan makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from rehome.cluster.snapshot.model import BROKERS, LOG_DIRS, REPLICAS, TOPICS, Snapshot
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan

REPLICA_KEYS = ("topic", "partition")
TAKEN_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Cluster:
    """A cluster in plain Python: what a test writes down.

    :param racks: broker id → rack path text, "" = none.
    :param replicas: partition → broker ids, preferred leader first.
    :param sizes: partition → bytes of one replica.
    :param disks: broker → (total bytes, usable bytes) of its one log dir.
    :param lagging: replicas that are not in the ISR; ``failed``: replicas in a failed log dir.
    :param min_isr: topic → min.insync.replicas.
    :param leaders: partition → the broker that leads it; else its first replica in sync does.
    :param bytes_in, bytes_out: partition → bytes per second; None = not measured.
    """

    racks: Mapping[int, str]
    replicas: Mapping[TopicPartition, Sequence[int]]
    sizes: Mapping[TopicPartition, int | None]
    disks: Mapping[int, tuple[int, int]] | None = None
    dead: frozenset[int] = frozenset()
    internal: frozenset[str] = frozenset()
    adding: frozenset[tuple[TopicPartition, int]] = frozenset()
    removing: frozenset[tuple[TopicPartition, int]] = frozenset()
    cordoned: frozenset[int] = frozenset()
    lagging: frozenset[tuple[TopicPartition, int]] = frozenset()
    failed: frozenset[tuple[TopicPartition, int]] = frozenset()
    min_isr: Mapping[str, int] = field(default_factory=dict)
    hidden_topics: tuple[str, ...] = ()
    bytes_in: Mapping[TopicPartition, float] | None = None
    bytes_out: Mapping[TopicPartition, float] | None = None
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)

    def snapshot(self, shuffle: int | None = None) -> Snapshot:
        """The cluster's snapshot; its rows in a random order when a seed is given."""
        tables = (
            (self._brokers(), BROKERS),
            (self._log_dirs(), LOG_DIRS),
            (self._topics(), TOPICS),
            (self._replicas(), REPLICAS),
        )
        rng = np.random.default_rng(shuffle)
        built = []
        for rows, schema in tables:
            if shuffle is not None:
                rows = [rows[i] for i in rng.permutation(len(rows))]
            built.append(pa.Table.from_pylist(rows, schema=schema))
        brokers, log_dirs, topics, replicas = built
        for name, rates in (("bytes_in_per_s", self.bytes_in), ("bytes_out_per_s", self.bytes_out)):
            if rates is not None:
                names = zip(
                    *(replicas[key].to_pylist() for key in ("topic", "partition")), strict=True
                )
                rate = [float(rates[TopicPartition(*name)]) for name in names]
                replicas = replicas.append_column(name, pa.array(rate))
        return Snapshot(
            "test",
            TAKEN_AT,
            0.1,
            brokers,
            log_dirs,
            topics,
            replicas,
            hidden_topics=self.hidden_topics,
        )

    def size_of(self, partition: TopicPartition) -> int:
        """Where every size is known."""
        size = self.sizes[partition]
        assert size is not None
        return size

    def after(self, plan: Plan) -> Cluster:
        """The cluster once the plan is carried out."""
        replicas = dict(self.replicas)
        for move in plan.moves:
            assert tuple(replicas[move.partition]) == move.current
            replicas[move.partition] = move.target
        moved = {move.partition for move in plan.moves}
        leaders = {p: broker for p, broker in self.leaders.items() if p not in moved}
        return replace(self, replicas=replicas, leaders=leaders)

    def _brokers(self) -> list[dict[str, Any]]:
        return [
            {
                "broker": broker,
                "host": "localhost",
                "port": 9092 + broker,
                "rack": rack or None,
                "rack_path": [part for part in rack.split("/") if part],
                "live": broker not in self.dead,
                "answered": broker not in self.dead,
                "error": None,
            }
            for broker, rack in self.racks.items()
        ]

    def _log_dirs(self) -> list[dict[str, Any]]:
        disks = self.disks or {}
        failed = {broker for _, broker in self.failed} - self.dead
        return [
            {
                "broker": broker,
                "log_dir": f"/{name}/{broker}",
                "total_bytes": disks.get(broker, (None, None))[0],
                "usable_bytes": disks.get(broker, (None, None))[1],
                "offline": name == "failed",
                "cordoned": broker in self.cordoned,
                "stray_replicas": 0,
                "error": None,
            }
            for broker in self.racks
            for name in (("data", "failed") if broker in failed else ("data",))
            if broker not in self.dead
        ]

    def _topics(self) -> list[dict[str, Any]]:
        of_topic = Counter(partition.topic for partition in self.replicas)
        return [
            {
                "topic": name,
                "internal": name in self.internal,
                "visible": True,
                "partitions": count,
                "min_insync_replicas": self.min_isr.get(name),
            }
            for name, count in sorted(of_topic.items())
        ]

    def _replicas(self) -> list[dict[str, Any]]:
        rows = []
        for partition, brokers in self.replicas.items():
            offline = {b for b in brokers if b in self.dead or (partition, b) in self.failed}
            synced = [b for b in brokers if b not in offline and (partition, b) not in self.lagging]
            chosen = self.leaders.get(partition)
            leader = chosen if chosen in synced else synced[0] if synced else None
            for position, broker in enumerate(brokers):
                rows.append(
                    {
                        "topic": partition.topic,
                        "partition": partition.partition,
                        "broker": broker,
                        "position": position,
                        "is_leader": broker == leader,
                        "in_isr": broker in synced,
                        "adding": (partition, broker) in self.adding,
                        "removing": (partition, broker) in self.removing,
                        "log_dir": None if broker in offline else f"/data/{broker}",
                        "size_bytes": None if broker in offline else self.sizes[partition],
                        "log_end_offset": self.ends.get((partition, broker)),
                    }
                )
        return rows


def cluster(
    racks: Sequence[str] | Mapping[int, str],
    rows: Sequence[Sequence[int]],
    sizes: Sequence[int] | int = 100,
    topic: str = "t",
    **options: Any,
) -> Cluster:
    """A cluster of one topic: racks of brokers 0, 1, …, and a row of replicas per partition."""
    if not isinstance(racks, Mapping):
        racks = dict(enumerate(racks))
    if isinstance(sizes, int):
        sizes = [sizes] * len(rows)
    partitions = [TopicPartition(topic, number) for number in range(len(rows))]
    return Cluster(
        racks=racks,
        replicas=dict(zip(partitions, rows, strict=True)),
        sizes=dict(zip(partitions, sizes, strict=True)),
        **options,
    )
