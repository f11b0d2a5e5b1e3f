"""A snapshot: everything Rehome knows of a cluster at one moment, as columnar tables.

The schemas below are the contract that docs/schema.md documents: they are what the warehouse
holds, what Spark reads and what the planner reads as NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from rehome.places.path_parts import path_part

BROKERS = pa.schema(
    [
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("host", pa.string()),
        pa.field("port", pa.int32()),
        pa.field("rack", pa.string()),  # raw broker.rack, for example /dc0/r1
        pa.field("rack_path", pa.list_(pa.string()), nullable=False),  # ["dc0", "r1"]; [] = none
        pa.field("live", pa.bool_(), nullable=False),  # in a fresh metadata answer
        pa.field("answered", pa.bool_(), nullable=False),  # with its log dirs
        pa.field("error", pa.string()),  # why it did not answer
        # rates in force that were set dynamically, for it or for all brokers, bytes/s; null = none
        pa.field("leader_throttled_rate", pa.int64()),
        pa.field("follower_throttled_rate", pa.int64()),
        pa.field("log_dir_throttled_rate", pa.int64()),
        pa.field("config_error", pa.string()),  # why the rates are not known; null = they are
    ]
)

LOG_DIRS = pa.schema(
    [
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("log_dir", pa.string(), nullable=False),
        pa.field("total_bytes", pa.int64()),
        pa.field("usable_bytes", pa.int64()),
        pa.field("offline", pa.bool_(), nullable=False),
        pa.field("cordoned", pa.bool_()),
        # replicas here of visible topics that the metadata does not place on this broker
        pa.field("stray_replicas", pa.int32(), nullable=False),
        pa.field("error", pa.string()),
    ]
)

TOPICS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("topic_id", pa.string()),
        pa.field("internal", pa.bool_(), nullable=False),
        pa.field("visible", pa.bool_(), nullable=False),  # false: on a log dir, not in metadata
        pa.field("partitions", pa.int32()),
        pa.field("replication_factor", pa.int32()),  # of the majority of partitions
        pa.field("min_insync_replicas", pa.int32()),
        pa.field("cleanup_policy", pa.string()),  # delete, compact, or both
        pa.field("leader_throttled_replicas", pa.string()),
        pa.field("follower_throttled_replicas", pa.string()),
    ]
)

REPLICAS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),  # 0 = preferred leader, stored order
        pa.field("is_leader", pa.bool_(), nullable=False),
        pa.field("in_isr", pa.bool_(), nullable=False),
        pa.field("adding", pa.bool_(), nullable=False),
        pa.field("removing", pa.bool_(), nullable=False),
        pa.field("log_dir", pa.string()),
        pa.field("size_bytes", pa.int64()),
        pa.field("log_end_offset", pa.int64()),
        pa.field("log_start_offset", pa.int64()),  # of the leader's local log only
        pa.field("future_log_dir", pa.string()),  # where a log-dir move is going
        pa.field("future_size_bytes", pa.int64()),
    ]
)

GROUPS = pa.schema(
    [
        pa.field("group", pa.string()),  # null: this coordinator did not list its groups
        pa.field("coordinator", pa.int32(), nullable=False),
        pa.field("state", pa.string()),
        pa.field("error", pa.string()),  # why its offsets are not (all) known
    ]
)

GROUP_OFFSETS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("committed_offset", pa.int64(), nullable=False),  # the next one it is to read
    ]
)

TABLES = {
    "brokers": BROKERS,
    "log_dirs": LOG_DIRS,
    "topics": TOPICS,
    "replicas": REPLICAS,
    "groups": GROUPS,
    "group_offsets": GROUP_OFFSETS,
}
"""Tables of a snapshot, and their schemas."""


@dataclass(frozen=True)
class Snapshot:
    """One reading of a cluster. Tables follow the schemas of this module, sorted by their keys.

    :param cluster_id: Kafka's cluster id.
    :param taken_at: when reading began, UTC.
    :param duration_s: how long reading took, in seconds.
    :param hidden_topics: topics seen on log dirs that metadata does not show to this principal.
    """

    cluster_id: str
    taken_at: datetime
    duration_s: float
    brokers: pa.Table
    log_dirs: pa.Table
    topics: pa.Table
    replicas: pa.Table
    groups: pa.Table = field(default_factory=GROUPS.empty_table)
    group_offsets: pa.Table = field(default_factory=GROUP_OFFSETS.empty_table)
    hidden_topics: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``cluster=<id>/taken_at=<utc>``: its place below ``snapshots/`` in the warehouse."""
        return f"cluster={path_part(self.cluster_id)}/taken_at={self.taken_at:%Y%m%dT%H%M%S.%fZ}"
