"""Answers of brokers as the tables of a snapshot. Pure; columns are built whole, not row by row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from rehome.cluster.snapshot import model as schema
from rehome.domain.configs import MIN_ISR
from rehome.domain.kafka import (
    Broker,
    BrokerError,
    BrokerId,
    ConfigValue,
    ConsumerGroup,
    LogDir,
    OngoingReassignment,
    Partial,
    PartitionState,
    ReplicaId,
    TopicDescription,
    TopicPartition,
)

LEADER_THROTTLED = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED = "follower.replication.throttled.replicas"
CLEANUP_POLICY = "cleanup.policy"
TOPIC_CONFIGS = (MIN_ISR, CLEANUP_POLICY, LEADER_THROTTLED, FOLLOWER_THROTTLED)
RATE_COLUMNS = {
    "leader_throttled_rate": "leader.replication.throttled.rate",
    "follower_throttled_rate": "follower.replication.throttled.rate",
    "log_dir_throttled_rate": "replica.alter.log.dirs.io.max.bytes.per.second",
}
"""Column of a broker's row → its configuration."""
DYNAMIC = frozenset({"DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"})
_NOT_READ = "its configuration was not read"

_NOWHERE = (None, None)


def rack_path(rack: str | None) -> list[str]:
    """``/dc0/r1`` → ``["dc0", "r1"]``; none is ``[]``. Without the slash at its beginning a rack
    has no levels (KIP-879): ``dc0/r1`` is one rack of that name.
    """
    parts = rack.split("/") if rack and rack.startswith("/") else [rack]
    return [part for part in parts if part]


def has_inner_slash(rack: str | None) -> bool:
    """Whether a rack looks like one with levels, and is none: ``dc0/r1``."""
    return "/" in (rack or "").strip("/") and not str(rack).startswith("/")


def replica_ids(topics: Mapping[str, TopicDescription]) -> list[ReplicaId]:
    """Every replica of every topic, by topic, partition and position."""
    return [
        ReplicaId(name, number, broker)
        for name, number, state in _partitions(topics)
        for broker in state.replicas
    ]


def leader_ids(topics: Mapping[str, TopicDescription]) -> list[ReplicaId]:
    """The leader's replica of every partition that has one."""
    return [
        ReplicaId(name, number, state.leader)
        for name, number, state in _partitions(topics)
        if state.leader is not None
    ]


def brokers_table(
    live: Mapping[BrokerId, Broker],
    silent: Mapping[BrokerId, BrokerError],
    configs: Mapping[BrokerId, Mapping[str, ConfigValue] | BrokerError],
) -> pa.Table:
    """Brokers alive or only mentioned; ``silent`` says which did not answer, and why.

    :param configs: of the brokers that were asked.
    """
    rows = []
    for broker_id in sorted({*live, *silent}):
        broker, error = live.get(broker_id), silent.get(broker_id)
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
                **_rates(configs.get(broker_id)),
            }
        )
    return pa.Table.from_pylist(rows, schema=schema.BROKERS)


def _rates(configs: Mapping[str, ConfigValue] | BrokerError | None) -> dict[str, Any]:
    if configs is None or isinstance(configs, BrokerError):
        return {"config_error": _NOT_READ if configs is None else str(configs)}
    config_values = {column: configs.get(key) for column, key in RATE_COLUMNS.items()}
    return {
        column: int(value.value)
        for column, value in config_values.items()
        if value is not None and value.source in DYNAMIC and value.value is not None
    }


def log_dirs_table(log_dirs: Iterable[LogDir], topics: Mapping[str, TopicDescription]) -> pa.Table:
    """Log dirs with their free space, and how many replicas in them the metadata does not know."""
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
    return pa.Table.from_pylist(rows, schema=schema.LOG_DIRS)


def topics_table(
    topics: Mapping[str, TopicDescription],
    configs: Mapping[str, Mapping[str, ConfigValue]],
    hidden: Iterable[str],
) -> pa.Table:
    """Topics seen, with the configs a plan needs, and topics that are hidden from us."""
    rows: list[dict[str, Any]] = [
        {"topic": name, "internal": False, "visible": False} for name in hidden
    ]
    for topic in topics.values():
        values = configs.get(topic.name, {})
        factors = [len(partition.replicas) for partition in topic.partitions.values()]
        min_isr = _value(values, MIN_ISR)
        rows.append(
            {
                "topic": topic.name,
                "topic_id": topic.topic_id,
                "internal": topic.internal,
                "visible": True,
                "partitions": len(topic.partitions),
                "replication_factor": max(set(factors), key=factors.count) if factors else None,
                "min_insync_replicas": None if min_isr is None else int(min_isr),
                "cleanup_policy": _value(values, CLEANUP_POLICY),
                "leader_throttled_replicas": _value(values, LEADER_THROTTLED),
                "follower_throttled_replicas": _value(values, FOLLOWER_THROTTLED),
            }
        )
    rows.sort(key=lambda row: str(row["topic"]))
    return pa.Table.from_pylist(rows, schema=schema.TOPICS)


def replicas_table(
    ids: Sequence[ReplicaId],
    topics: Mapping[str, TopicDescription],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    log_dirs: Iterable[LogDir],
    ends: Mapping[ReplicaId, int | BrokerError],
    starts: Mapping[ReplicaId, int | BrokerError],
) -> pa.Table:
    """One row per replica, in the order of ``ids``, which is that of :func:`replica_ids`.

    :param ends: log end offsets.
    :param starts: log start offsets, of the leaders.
    """
    states = [state for _, _, state in _partitions(topics)]
    adding = _moving((partition, entry.adding) for partition, entry in ongoing.items())
    removing = _moving((partition, entry.removing) for partition, entry in ongoing.items())
    places, future_places = _places(log_dirs)
    now = [places.get(replica, _NOWHERE) for replica in ids]
    later = [future_places.get(replica, _NOWHERE) for replica in ids]
    columns: dict[str, list[Any]] = {
        "topic": [replica.topic for replica in ids],
        "partition": [replica.partition for replica in ids],
        "broker": [replica.broker for replica in ids],
        "position": list(chain.from_iterable(range(len(state.replicas)) for state in states)),
        "is_leader": [broker == state.leader for state in states for broker in state.replicas],
        "in_isr": [broker in state.isr for state in states for broker in state.replicas],
        "adding": [replica in adding for replica in ids],
        "removing": [replica in removing for replica in ids],
        "log_dir": [path for path, _ in now],
        "size_bytes": [size for _, size in now],
        "log_end_offset": _known_offsets(ends, ids),
        "log_start_offset": _known_offsets(starts, ids),
        "future_log_dir": [path for path, _ in later],
        "future_size_bytes": [size for _, size in later],
    }
    return pa.table(columns, schema=schema.REPLICAS)


def groups_table(groups: Partial[list[ConsumerGroup]]) -> pa.Table:
    """Groups in order of name, and first the coordinators that did not list theirs."""
    silent = [
        {"coordinator": broker, "error": str(error)}
        for broker, error in sorted(groups.missing.items())
    ]
    listed = [
        {
            "group": group.name,
            "coordinator": group.coordinator,
            "state": group.state,
            "error": group.error and str(group.error),
        }
        for group in groups.value
    ]
    return pa.Table.from_pylist([*silent, *listed], schema=schema.GROUPS)


def group_offsets_table(groups: Iterable[ConsumerGroup]) -> pa.Table:
    """What each group has committed, by group, topic and partition."""
    rows = [
        (group.name, *partition, offset)
        for group in groups
        for partition, offset in sorted(group.committed.items())
    ]
    columns = {
        name: [row[place] for row in rows] for place, name in enumerate(schema.GROUP_OFFSETS.names)
    }
    return pa.table(columns, schema=schema.GROUP_OFFSETS)


def _known_offsets(
    offsets: Mapping[ReplicaId, int | BrokerError], ids: Iterable[ReplicaId]
) -> list[int | None]:
    answers = (offsets.get(replica) for replica in ids)
    return [offset if isinstance(offset, int) else None for offset in answers]


def _partitions(
    topics: Mapping[str, TopicDescription],
) -> Iterable[tuple[str, int, PartitionState]]:
    for name, topic in sorted(topics.items()):
        for number, state in sorted(topic.partitions.items()):
            yield name, number, state


def _moving(
    entries: Iterable[tuple[TopicPartition, Collection[BrokerId]]],
) -> set[tuple[str, int, BrokerId]]:
    return {(*partition, broker) for partition, brokers in entries for broker in brokers}


_Places = dict[tuple[str, int, BrokerId], tuple[str | None, int | None]]


def _places(log_dirs: Iterable[LogDir]) -> tuple[_Places, _Places]:
    """Log dir and size of each replica: of its log, and of the future log a log-dir move fills."""
    current: _Places = {}
    future: _Places = {}
    for log_dir in log_dirs:
        broker, path = log_dir.broker, log_dir.path
        for (topic, number), replica in log_dir.replicas.items():
            places = future if replica.is_future else current
            places[topic, number, broker] = (path, replica.size_bytes)
    return current, future


def _is_stray(
    broker: BrokerId, partition: TopicPartition, topics: Mapping[str, TopicDescription]
) -> bool:
    topic = topics.get(partition.topic)
    if topic is None:  # hidden, as the topics table says
        return False
    state = topic.partitions.get(partition.partition)
    return state is None or broker not in state.replicas


def _value(values: Mapping[str, ConfigValue], key: str) -> str | None:
    config = values.get(key)
    return None if config is None else config.value
