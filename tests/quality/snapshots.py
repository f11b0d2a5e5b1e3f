"""A snapshot that passes its gate, as rows that a test may spoil."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from rehome.cluster.snapshot.model import BROKERS, GROUPS, LOG_DIRS, REPLICAS, TOPICS, Snapshot

TAKEN_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BROKER_IDS = (1, 2, 3, 4)
PARTITIONS = 12
SIZE_BYTES = 1_000
Row = dict[str, Any]


def _brokers() -> list[Row]:
    return [
        {
            "broker": broker,
            "host": "localhost",
            "port": 9090 + broker,
            "rack": f"/dc{broker % 2}/r{broker}",
            "rack_path": [f"dc{broker % 2}", f"r{broker}"],
            "live": True,
            "answered": True,
        }
        for broker in BROKER_IDS
    ]


def _log_dirs() -> list[Row]:
    return [
        {
            "broker": broker,
            "log_dir": f"/data/{number}",
            "total_bytes": 1_000_000,
            "usable_bytes": 900_000,
            "offline": False,
            "cordoned": False,
            "stray_replicas": 0,
        }
        for broker in BROKER_IDS
        for number in (0, 1)
    ]


def _topics() -> list[Row]:
    return [
        {
            "topic": "payments",
            "topic_id": "id",
            "internal": False,
            "visible": True,
            "partitions": PARTITIONS,
            "replication_factor": 2,
            "min_insync_replicas": 1,
            "leader_throttled_replicas": "",
            "follower_throttled_replicas": "",
        }
    ]


def _replicas() -> list[Row]:
    """Partition n lies on brokers of both data centres, led by the first."""
    return [
        {
            "topic": "payments",
            "partition": number,
            "broker": (number + position) % len(BROKER_IDS) + 1,
            "position": position,
            "is_leader": position == 0,
            "in_isr": True,
            "adding": False,
            "removing": False,
            "log_dir": "/data/0",
            "size_bytes": SIZE_BYTES,
            "log_end_offset": 10,
        }
        for number in range(PARTITIONS)
        for position in (0, 1)
    ]


@dataclass
class Rows:
    """The rows of a snapshot of four brokers in two data centres, sound until spoilt."""

    brokers: list[Row] = field(default_factory=_brokers)
    log_dirs: list[Row] = field(default_factory=_log_dirs)
    topics: list[Row] = field(default_factory=_topics)
    replicas: list[Row] = field(default_factory=_replicas)
    groups: list[Row] = field(default_factory=list)

    def broker(self, broker: int) -> Row:
        return next(row for row in self.brokers if row["broker"] == broker)

    def lose(self, broker: int) -> None:
        """It is dead: it has no rack, and nothing is known of what it holds."""
        lost: Row = {
            "live": False,
            "answered": False,
            "rack": None,
            "rack_path": [],
            "error": "gone",
        }
        self.broker(broker).update(lost)
        self.log_dirs = [row for row in self.log_dirs if row["broker"] != broker]
        for row in self.replicas:
            if row["broker"] == broker:
                row.update(is_leader=False, in_isr=False)
                row.update(log_dir=None, size_bytes=None, log_end_offset=None)

    def log_dir(self, broker: int, path: str) -> Row:
        return next(
            row for row in self.log_dirs if (row["broker"], row["log_dir"]) == (broker, path)
        )

    def replica(self, partition: int, position: int) -> Row:
        return next(
            row
            for row in self.replicas
            if (row["partition"], row["position"]) == (partition, position)
        )

    def snapshot(self) -> Snapshot:
        return Snapshot(
            cluster_id="test",
            taken_at=TAKEN_AT,
            duration_s=0.1,
            brokers=pa.Table.from_pylist(self.brokers, schema=BROKERS),
            log_dirs=pa.Table.from_pylist(self.log_dirs, schema=LOG_DIRS),
            topics=pa.Table.from_pylist(self.topics, schema=TOPICS),
            replicas=pa.Table.from_pylist(self.replicas, schema=REPLICAS),
            groups=pa.Table.from_pylist(self.groups, schema=GROUPS),
            hidden_topics=tuple(row["topic"] for row in self.topics if not row["visible"]),
        )
