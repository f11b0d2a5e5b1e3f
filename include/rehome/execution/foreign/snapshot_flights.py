"""What a snapshot shows in flight, as a reading of the cluster would. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    Replicas,
    TopicPartition,
)
from rehome.domain.run.observation import Observation
from rehome.execution.foreign.in_flight import Flight, ThrottlesSeen
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    split,
)

_LISTS = {
    LEADER_REPLICAS: "leader_throttled_replicas",
    FOLLOWER_REPLICAS: "follower_throttled_replicas",
}
_RATES = {LEADER_RATE: "leader_throttled_rate", FOLLOWER_RATE: "follower_throttled_rate"}


def snapshot_flights(snapshot: Snapshot) -> tuple[Observation, ThrottlesSeen]:
    """Everything that was in flight when a snapshot was taken, and the throttles of it."""
    replicas = snapshot.replicas
    moving = replicas.filter(pc.or_(replicas["adding"], replicas["removing"]))
    rows: list[dict[str, Any]] = []
    if moving.num_rows:  # most snapshots show nothing in flight
        keys = moving.group_by(["topic", "partition"]).aggregate([])
        rows = replicas.join(keys, ["topic", "partition"], join_type="left semi").to_pylist()
    rows.sort(key=lambda row: (row["topic"], row["partition"], row["position"]))
    by_partition: dict[TopicPartition, list[dict[str, Any]]] = {}
    for row in rows:
        by_partition.setdefault(TopicPartition(row["topic"], row["partition"]), []).append(row)
    topics = _topics(snapshot, {partition.topic for partition in by_partition})
    brokers = snapshot.brokers.to_pylist()
    observation = Observation(
        taken_at=snapshot.taken_at,
        partitions={p: _state(of_one) for p, of_one in by_partition.items()},
        ongoing={p: _entry(of_one) for p, of_one in by_partition.items()},
        live_brokers=frozenset(row["broker"] for row in brokers if row["live"]),
        topic_ids={name: row["topic_id"] or "" for name, row in topics.items()},
        sizes={
            ReplicaId(row["topic"], row["partition"], row["broker"]): row["size_bytes"]
            for row in rows
            if row["size_bytes"] is not None
        },
        missing=_silent(brokers),
    )
    return observation, ThrottlesSeen(_lists(topics), _rates(brokers))


def orders_at_rest(
    snapshot: Snapshot, flights: Collection[Flight]
) -> dict[TopicPartition, Replicas]:
    """Replicas of these partitions when a snapshot was taken, preferred leader first; of one that
    was in flight then, or whose topic is another one by now, none.
    """
    ids = {flight.partition: flight.topic_id for flight in flights}
    names = pa.array(sorted({partition.topic for partition in ids}), pa.string())
    replicas = snapshot.replicas
    rows = replicas.filter(pc.is_in(replicas["topic"], names)).to_pylist()
    rows.sort(key=lambda row: row["position"])
    topics = _topics(snapshot, {partition.topic for partition in ids})
    by_partition: dict[TopicPartition, list[dict[str, Any]]] = {}
    for row in rows:
        partition = TopicPartition(row["topic"], row["partition"])
        if partition in ids:
            by_partition.setdefault(partition, []).append(row)
    return {
        partition: tuple(row["broker"] for row in of_one)
        for partition, of_one in by_partition.items()
        if not any(row["adding"] or row["removing"] for row in of_one)
        and (topics[partition.topic]["topic_id"] or "") in ("", ids[partition])
    }


def _topics(snapshot: Snapshot, names: set[str]) -> dict[str, dict[str, Any]]:
    topics = snapshot.topics
    rows = topics.filter(pc.is_in(topics["topic"], pa.array(sorted(names), pa.string())))
    return {row["topic"]: row for row in rows.to_pylist()}


def _state(rows: Iterable[Mapping[str, Any]]) -> PartitionState:
    replicas = tuple(row["broker"] for row in rows)
    leaders = [row["broker"] for row in rows if row["is_leader"]]
    in_sync = frozenset(row["broker"] for row in rows if row["in_isr"])
    return PartitionState(leaders[0] if leaders else None, replicas, in_sync)


def _entry(rows: Iterable[Mapping[str, Any]]) -> OngoingReassignment:
    def of(column: str) -> tuple[BrokerId, ...]:
        return tuple(row["broker"] for row in rows if row[column])

    return OngoingReassignment(tuple(row["broker"] for row in rows), of("adding"), of("removing"))


def _silent(brokers: Iterable[Mapping[str, Any]]) -> dict[BrokerId, BrokerError]:
    return {
        row["broker"]: ErrorCode.BROKER_NOT_AVAILABLE.error(row["error"] or "")
        for row in brokers
        if not row["answered"]
    }


def _lists(topics: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], list[str]]:
    return {
        (name, key): split(row.get(column))
        for name, row in topics.items()
        for key, column in _LISTS.items()
    }


def _rates(brokers: Iterable[Mapping[str, Any]]) -> dict[tuple[BrokerId, str], int | None]:
    return {
        (row["broker"], key): row.get(column)
        for row in brokers
        for key, column in _RATES.items()
        if not row.get("config_error")
    }
