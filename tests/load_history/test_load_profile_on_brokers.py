"""Rates that the history gives, against what was really produced to and consumed from brokers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

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

# What a record's own header and its batch's add to 10 kB.
TOLERANCE = 0.05
VALUE = os.urandom(10_000)
ROUNDS = 4
READ = 0.5  # of what was written, by the second group


@pytest.fixture(scope="module")
def gateway(cluster: LocalCluster) -> Iterator[ClusterGateway]:
    with ClusterGateway(Connection.from_settings(cluster.client_settings())) as opened:
        yield opened


class Traffic:
    """Produces to a topic's partitions and reads them, by so many records at a time."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self.topic = topic
        settings = cluster.client_settings() | {"log_level": "0"}
        self.plain = Producer(settings | {"linger.ms": "5"})
        self.transactional = Producer(settings | {"transactional.id": f"of-{topic}"})
        self.transactional.init_transactions(120)
        self.consumers = {
            share: Consumer(
                settings
                | {"group.id": f"{share}-of-{topic}", "enable.auto.commit": "false"}
                | {"auto.offset.reset": "earliest"}
            )
            for share in (1.0, READ)
        }
        self.consumed = dict.fromkeys(self.consumers, 0)

    def write(self, partition: int, records: int) -> None:
        for _ in range(records):
            self.plain.produce(self.topic, VALUE, partition=partition)
        assert not self.plain.flush(120)

    def write_in_transactions(self, partition: int, records: int) -> None:
        for _ in range(records):
            self.transactional.begin_transaction()
            self.transactional.produce(self.topic, VALUE, partition=partition)
            self.transactional.commit_transaction(120)

    def read(self, partition: int, records: int) -> None:
        """Each group reads its share of so many records, and commits."""
        for share, consumer in self.consumers.items():
            at = self.consumed[share] or OFFSET_BEGINNING
            consumer.assign([Position(self.topic, partition, at)])
            wanted = round(share * records)
            for _ in range(wanted):
                message = consumer.poll(120)
                assert message is not None
                assert message.error() is None
            self.consumed[share] += wanted
            offset = Position(self.topic, partition, self.consumed[share])
            consumer.commit(offsets=[offset], asynchronous=False)

    def close(self) -> None:
        for consumer in self.consumers.values():
            consumer.close()


@pytest.fixture
def traffic(cluster: LocalCluster, topics: Topics) -> Iterator[Traffic]:
    running = Traffic(
        cluster, topics.create([[1, 2, 3], [2, 3, 1], [3, 1, 2], [4, 1, 2], [1, 4, 3]])
    )
    yield running
    running.close()


READ_TOO, TRANSACTIONS, TRIMMED, LED_ANEW, IDLE = range(5)
FOLLOWERS = 2


def test_rates_are_those_of_producers_followers_and_groups(
    cluster: LocalCluster, gateway: ClusterGateway, traffic: Traffic, tmp_path: Path
) -> None:
    warehouse, now = Warehouse(tmp_path.as_uri()), clock_of_one_day()
    written = [0] * 5

    def snapshot() -> datetime:
        taken_at = now()
        warehouse.write_snapshot(take_snapshot(gateway, taken_at))
        for day in pending_days(warehouse, cluster.cluster_id):
            roll_up(day, SnapshotPace(shortest_s=0.1))
        return taken_at

    # The groups' first commits say nothing of how long they took to read that far.
    for partition in range(4):
        traffic.write(partition, 10)
    traffic.read(READ_TOO, 10)
    began = snapshot()
    for number in range(ROUNDS):
        records = 100 + 20 * number
        for partition in (READ_TOO, TRIMMED, LED_ANEW):
            traffic.write(partition, records)
        traffic.write_in_transactions(TRANSACTIONS, 20)
        traffic.read(READ_TOO, records)
        for partition, count in ((READ_TOO, records), (TRIMMED, records), (LED_ANEW, records)):
            written[partition] += count * len(VALUE)
        written[TRANSACTIONS] += 20 * len(VALUE)
        if number == 1:
            trim(cluster, Position(traffic.topic, TRIMMED, 60))
        if number == 2:
            lead_by_another(gateway, TopicPartition(traffic.topic, LED_ANEW), [1, 4, 2])
        ended = snapshot()

    rows = loads(warehouse, cluster, traffic.topic)
    seconds = (ended - began).total_seconds()
    read = written[READ_TOO] * (1 + READ)
    for partition, row in enumerate(rows):
        rate_in = written[partition] / seconds
        rate_out = rate_in * FOLLOWERS + (read / seconds if partition == READ_TOO else 0)
        assert row["bytes_in_mean"] == pytest.approx(rate_in, rel=TOLERANCE), partition
        assert row["bytes_out_mean"] == pytest.approx(rate_out, rel=TOLERANCE), partition
        assert row["in_s"] == pytest.approx(seconds, rel=TOLERANCE)
    assert rows[IDLE]["bytes_in_p95"] == 0
    assert rows[READ_TOO]["record_bytes"] == pytest.approx(len(VALUE), rel=TOLERANCE)
    # The mark of each transaction's end is a record of its own, and small.
    assert rows[TRANSACTIONS]["record_bytes"] == pytest.approx(len(VALUE) / 2, rel=TOLERANCE)
    rollup = window(warehouse, cluster.cluster_id, 1)
    place = rollup.topics.index(traffic.topic)
    mine = rollup.keys >> 32 == place
    assert rollup.numbers["leader_changes"][mine].tolist() == [0, 0, 0, 1, 0]
    assert rollup.span.snapshots == ROUNDS + 1


def trim(cluster: LocalCluster, before: Position) -> None:
    admin = AdminClient(cluster.client_settings() | {"log_level": "0"})
    for future in admin.delete_records([before]).values():
        future.result(120)


def lead_by_another(
    gateway: ClusterGateway, partition: TopicPartition, replicas: list[int]
) -> None:
    assert gateway.alter_reassignments({partition: replicas}) == {partition: None}

    def led() -> bool:
        state = gateway.describe_topics([partition.topic])[partition.topic]
        found = state.partitions[partition.partition]
        if found.replicas == tuple(replicas):
            gateway.elect_preferred_leaders([partition])
        return found.leader == replicas[0]

    wait_until(led, "another leader")


def loads(warehouse: Warehouse, cluster: LocalCluster, topic: str) -> list[dict[str, Any]]:
    table = loads_of(window(warehouse, cluster.cluster_id, 1))
    return [row for row in table.to_pylist() if row["topic"] == topic]
