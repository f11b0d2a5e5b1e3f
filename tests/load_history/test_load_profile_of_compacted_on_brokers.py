"""Compacted topics on real brokers, whose cleaner is at work between the snapshots."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.kafka import TopicPartition
from rehome.load_history.daily_rollups import SnapshotPace, pending_days, roll_up, window
from rehome.load_history.load_profile import loads_of
from rehome.warehouse import Warehouse
from tests.conftest import Topics
from tests.load_history.one_day import clock_of_one_day

LEADER = 1
RECORD = 5_000
SEGMENT = 2**20
KEYS = 10
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(SEGMENT),
    "min.cleanable.dirty.ratio": "0.01",
}


@pytest.fixture(scope="module")
def gateway(cluster: LocalCluster) -> Iterator[ClusterGateway]:
    with ClusterGateway(Connection.from_settings(cluster.client_settings())) as opened:
        yield opened


@pytest.fixture
def hasty_cleaner(cluster: LocalCluster) -> Iterator[None]:
    """A cleaner that looks for work all the time, instead of every fifteen seconds."""
    admin = AdminClient(cluster.client_settings() | {"log_level": "0"})

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry("log.cleaner.backoff.ms", "100", incremental_operation=operation)
        resource = ConfigResource(
            ConfigResource.Type.BROKER, str(LEADER), incremental_configs=[entry]
        )
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(120)

    alter(AlterConfigOpType.SET)
    yield
    alter(AlterConfigOpType.DELETE)


def test_what_the_cleaner_removed_is_reported_as_estimated_with_what_is_certain(
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    hasty_cleaner: None,
    tmp_path: Path,
) -> None:
    """The active segment is never cleaned: it shows what records measure, and is all that the log
    grows by while the cleaner removes what was in the others.
    """
    topic = topics.create([[LEADER]], config=COMPACTED)
    producer = Producer(cluster.client_settings() | {"log_level": "0"})
    warehouse, now = Warehouse(tmp_path.as_uri()), clock_of_one_day()

    def size() -> int:
        (found,) = (
            replica.size_bytes
            for log_dir in gateway.describe_log_dirs([LEADER], [TopicPartition(topic, 0)]).value
            for replica in log_dir.replicas.values()
        )
        return found

    def written(records: int, until: Callable[[int], bool]) -> int:
        for number in range(records):
            producer.produce(topic, os.urandom(RECORD), key=f"{number % KEYS}")
        assert not producer.flush(120)
        wait_until(lambda: until(size()), "the size", 120)
        snapshot = take_snapshot(gateway, now())
        warehouse.write_snapshot(snapshot)
        for day in pending_days(warehouse, cluster.cluster_id):
            roll_up(day, SnapshotPace(shortest_s=0.0))
        (found,) = (row for row in snapshot.replicas.to_pylist() if row["topic"] == topic)
        return int(found["size_bytes"])

    def cleaned(found: int) -> bool:
        return found < SEGMENT + 2 * KEYS * RECORD

    sizes = [
        written(0, lambda found: found == 0),
        written(150, lambda found: 150 * RECORD < found < SEGMENT),
        written(600, cleaned),
        written(270, cleaned),
    ]
    (row,) = (
        row
        for row in loads_of(window(warehouse, cluster.cluster_id, 1)).to_pylist()
        if row["topic"] == topic
    )
    rollup = window(warehouse, cluster.cluster_id, 1)
    mine = rollup.keys >> 32 == rollup.topics.index(topic)
    numbers = {name: float(values[mine][0]) for name, values in rollup.numbers.items()}
    assert numbers["messages"] == 150 + 600 + 270
    assert numbers["measured_bytes"] == 0, "who knows when the cleaner ran"
    assert numbers["bytes_in"] == pytest.approx(numbers["messages"] * RECORD, rel=0.05)
    grown = sum(max(after - before, 0) for before, after in pairwise(sizes))
    assert numbers["least_bytes"] == grown < numbers["bytes_in"] / 2
    assert row["bytes_in_least"] < row["bytes_in_mean"] / 2
    assert row["record_bytes"] == pytest.approx(RECORD, rel=0.05)
