"""Reads a cluster into a snapshot: one fresh look, a dead broker included as what it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from include.cluster import snapshot as schema
from include.cluster.errors import ClusterError
from include.cluster.model import (
    Broker,
    BrokerError,
    BrokerId,
    ConfigValue,
    LogDir,
    OngoingReassignment,
    Partial,
    PartitionState,
    ReplicaId,
    ReplicaOnDisk,
    TopicDescription,
    TopicPartition,
)
from include.cluster.port import ClusterPort, ConfigResource
from include.cluster.snapshot import Snapshot

TOPIC_CONFIGS = (
    "min.insync.replicas",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


def take_snapshot(cluster: ClusterPort, now: datetime) -> Snapshot:
    """One fresh read of everything a plan needs.

    A broker that does not answer is a row with ``answered = false`` and the reason; its replicas
    have no size. A topic that lies on a log dir but is not in the metadata is hidden from this
    principal: a row with ``visible = false``.

    :param now: when reading begins, aware, UTC.
    :raises ClusterError: when the cluster cannot be reached or a right is missing.
    """
    started = time.monotonic()
    description = cluster.describe_cluster()
    topics = cluster.describe_topics()
    log_dirs = cluster.describe_log_dirs()
    ongoing = cluster.list_reassignments()
    configs = _topic_configs(cluster, topics)
    offsets = cluster.log_end_offsets(
        [ReplicaId(name, number, broker) for name, number, broker in _replicas_of(topics)]
    )
    on_disk = _on_disk(log_dirs.value)
    hidden = sorted({replica.topic for replica in on_disk} - topics.keys())
    mentioned = {broker for _, _, broker in _replicas_of(topics)}
    missing = log_dirs.missing | {
        broker: BrokerError(8, "BROKER_NOT_AVAILABLE", "not in a fresh metadata answer")
        for broker in mentioned - description.brokers.keys()
    }
    return Snapshot(
        cluster_id=description.cluster_id,
        taken_at=now,
        duration_s=round(time.monotonic() - started, 3),
        brokers=_brokers_table(description.brokers, missing),
        log_dirs=_log_dirs_table(log_dirs.value, topics),
        topics=_topics_table(topics, configs, hidden),
        replicas=_replicas_table(topics, ongoing, on_disk, offsets),
        hidden_topics=tuple(hidden),
    )


def rack_path(rack: str | None) -> list[str]:
    """``/dc0/r1`` → ``["dc0", "r1"]``; a plain rack is a tree of depth one; none is ``[]``."""
    return [part for part in (rack or "").split("/") if part]


class _Place(NamedTuple):
    log_dir: str
    replica: ReplicaOnDisk


class _Placed(NamedTuple):
    """Where a replica lies: its log, and the future log that a log-dir move fills."""

    current: _Place | None = None
    future: _Place | None = None


def _topic_configs(
    cluster: ClusterPort, topics: Mapping[str, TopicDescription]
) -> dict[str, Mapping[str, ConfigValue]]:
    resources = [ConfigResource.topic(name) for name in topics]
    configs: dict[str, Mapping[str, ConfigValue]] = {}
    for resource, values in cluster.describe_configs(resources, TOPIC_CONFIGS).items():
        if isinstance(values, BrokerError):
            if values.code == 3:  # deleted since the metadata was read
                continue
            raise ClusterError(
                f"The configuration of topic {resource.name} could not be read", error=values
            )
        configs[resource.name] = values
    return configs


def _replicas_of(
    topics: Mapping[str, TopicDescription],
) -> Iterable[tuple[str, int, BrokerId]]:
    for topic in topics.values():
        for number, partition in topic.partitions.items():
            for broker in partition.replicas:
                yield topic.name, number, broker


def _on_disk(log_dirs: Iterable[LogDir]) -> dict[ReplicaId, _Placed]:
    found: dict[ReplicaId, _Placed] = {}
    for log_dir in log_dirs:
        for (topic, number), replica in log_dir.replicas.items():
            key = ReplicaId(topic, number, log_dir.broker)
            placed, place = found.get(key, _Placed()), _Place(log_dir.path, replica)
            found[key] = (
                placed._replace(future=place)
                if replica.is_future
                else placed._replace(current=place)
            )
    return found


def _table(rows: list[dict[str, Any]], to: pa.Schema) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in to.names}
    return pa.table(columns, schema=to)


def _brokers_table(
    live: Mapping[BrokerId, Broker], missing: Mapping[BrokerId, BrokerError]
) -> pa.Table:
    rows = []
    for broker_id in sorted({*live, *missing}):
        broker, error = live.get(broker_id), missing.get(broker_id)
        rows.append(
            {
                "broker": broker_id,
                "host": broker and broker.host,
                "port": broker and broker.port,
                "rack": broker and broker.rack,
                "rack_path": rack_path(broker.rack) if broker else [],
                "live": broker is not None,
                "answered": error is None,
                "error": error and str(error),
            }
        )
    return _table(rows, schema.BROKERS)


def _log_dirs_table(
    log_dirs: Iterable[LogDir], topics: Mapping[str, TopicDescription]
) -> pa.Table:
    rows = [
        {
            "broker": log_dir.broker,
            "log_dir": log_dir.path,
            "total_bytes": log_dir.total_bytes,
            "usable_bytes": log_dir.usable_bytes,
            "offline": log_dir.error is not None,
            "cordoned": log_dir.cordoned,
            "stray_replicas": sum(
                _is_stray(log_dir.broker, partition, topics) for partition in log_dir.replicas
            ),
            "error": log_dir.error and str(log_dir.error),
        }
        for log_dir in sorted(log_dirs, key=lambda item: (item.broker, item.path))
    ]
    return _table(rows, schema.LOG_DIRS)


def _is_stray(
    broker: BrokerId, partition: TopicPartition, topics: Mapping[str, TopicDescription]
) -> bool:
    topic = topics.get(partition.topic)
    if topic is None:  # hidden: told by the topics table
        return False
    state = topic.partitions.get(partition.partition)
    return state is None or broker not in state.replicas


def _topics_table(
    topics: Mapping[str, TopicDescription],
    configs: Mapping[str, Mapping[str, ConfigValue]],
    hidden: Iterable[str],
) -> pa.Table:
    rows: list[dict[str, Any]] = [
        dict.fromkeys(schema.TOPICS.names) | {"topic": name, "internal": False, "visible": False}
        for name in hidden
    ]
    for topic in topics.values():
        values = configs.get(topic.name, {})
        factors = [len(partition.replicas) for partition in topic.partitions.values()]
        min_isr = _value(values, "min.insync.replicas")
        rows.append(
            {
                "topic": topic.name,
                "topic_id": topic.topic_id,
                "internal": topic.internal,
                "visible": True,
                "partitions": len(topic.partitions),
                "replication_factor": max(set(factors), key=factors.count) if factors else None,
                "min_insync_replicas": None if min_isr is None else int(min_isr),
                "leader_throttled_replicas": _value(
                    values, "leader.replication.throttled.replicas"
                ),
                "follower_throttled_replicas": _value(
                    values, "follower.replication.throttled.replicas"
                ),
            }
        )
    return _table(sorted(rows, key=lambda row: str(row["topic"])), schema.TOPICS)


def _value(values: Mapping[str, ConfigValue], key: str) -> str | None:
    found = values.get(key)
    return None if found is None else found.value


def _replicas_table(
    topics: Mapping[str, TopicDescription],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    on_disk: Mapping[ReplicaId, _Placed],
    offsets: Partial[dict[ReplicaId, int | BrokerError]],
) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in schema.REPLICAS.names}
    for topic in sorted(topics.values(), key=lambda item: item.name):
        for number in sorted(topic.partitions):
            state = topic.partitions[number]
            moving = ongoing.get(TopicPartition(topic.name, number))
            for position, broker in enumerate(state.replicas):
                replica = ReplicaId(topic.name, number, broker)
                row = _replica_row(replica, position, state, moving)
                row |= _disk_columns(on_disk.get(replica, _Placed()))
                offset = offsets.value.get(replica)
                row["log_end_offset"] = offset if isinstance(offset, int) else None
                for name, values in columns.items():
                    values.append(row[name])
    return pa.table(columns, schema=schema.REPLICAS)


def _replica_row(
    replica: ReplicaId,
    position: int,
    state: PartitionState,
    moving: OngoingReassignment | None,
) -> dict[str, Any]:
    return {
        "topic": replica.topic,
        "partition": replica.partition,
        "broker": replica.broker,
        "position": position,
        "is_leader": state.leader == replica.broker,
        "in_isr": replica.broker in state.isr,
        "adding": moving is not None and replica.broker in moving.adding,
        "removing": moving is not None and replica.broker in moving.removing,
    }


def _disk_columns(placed: _Placed) -> dict[str, Any]:
    current, future = placed
    return {
        "log_dir": current and current.log_dir,
        "size_bytes": current and current.replica.size_bytes,
        "future_log_dir": future and future.log_dir,
        "future_size_bytes": future and future.replica.size_bytes,
    }
