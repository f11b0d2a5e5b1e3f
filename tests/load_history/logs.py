"""Logs whose every byte is known, to compare with what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from rehome.cluster.snapshot.model import GROUP_OFFSETS, GROUPS, REPLICAS, TOPICS
from rehome.load_history.log_readings import Readings, readings_of

START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass
class Log:
    """One partition. ``written`` counts every byte a producer has ever sent to it."""

    leader: int = 1
    followers: int = 1
    start: int = 0
    end: int = 0
    size: int = 0
    written: int = 0
    topic_id: str = "a"
    policy: str = "delete"
    committed: dict[str, int] = field(default_factory=dict)

    def append(self, records: int, record_bytes: int) -> None:
        self.end += records
        self.size += records * record_bytes
        self.written += records * record_bytes

    def expire(self, records: int, record_bytes: int) -> None:
        """Retention removes a whole segment."""
        self.start += records
        self.size -= records * record_bytes


def read(
    logs: Mapping[str, Log], minutes: float, unread: str | None = None, silent: tuple[str, ...] = ()
) -> Readings:
    """A snapshot of topics of one partition each, so many minutes after the start."""
    topics, replicas, offsets = [], [], []
    for topic, log in logs.items():
        topics.append(
            {
                "topic": topic,
                "topic_id": log.topic_id,
                "internal": False,
                "visible": True,
                "cleanup_policy": log.policy,
            }
        )
        reported = topic not in silent
        replicas += [
            {
                "topic": topic,
                "partition": 0,
                "broker": log.leader + position,
                "position": position,
                "is_leader": position == 0,
                "in_isr": True,
                "adding": False,
                "removing": False,
                "size_bytes": log.size if reported else None,
                "log_end_offset": log.end if reported else None,
                "log_start_offset": log.start if reported and position == 0 else None,
            }
            for position in range(log.followers + 1)
        ]
        offsets += [
            {"group": group, "topic": topic, "partition": 0, "committed_offset": offset}
            for group, offset in log.committed.items()
        ]
    groups = [] if unread is None else [{"group": "g", "coordinator": 1, "error": unread}]
    tables = {
        "topics": pa.Table.from_pylist(topics, schema=TOPICS),
        "replicas": pa.Table.from_pylist(replicas, schema=REPLICAS),
        "groups": pa.Table.from_pylist(groups, schema=GROUPS),
        "group_offsets": pa.Table.from_pylist(offsets, schema=GROUP_OFFSETS),
    }
    return readings_of(START + timedelta(minutes=minutes), tables)
