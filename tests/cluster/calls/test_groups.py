"""Consumer groups' offsets and where logs begin, as real brokers report them."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import broker_error
from rehome.cluster.messages import admin as messages
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.kafka import ConsumerGroup, Partial, ReplicaId, TopicPartition
from tests.conftest import Topics
from tests.rights import PLANNER, granted

COORDINATOR_IS_COMING = {
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
}


def commit(cluster: LocalCluster, group: str, positions: dict[TopicPartition, int]) -> None:
    """Commit offsets in the name of a group that has no members."""
    consumer = Consumer(
        cluster.client_settings() | {"group.id": group, "enable.auto.commit": "false"}
    )

    def committed() -> bool:
        """The first group of a cluster waits for its coordinator's topic to be made."""
        offsets = [Position(*partition, offset) for partition, offset in positions.items()]
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as refused:
            if refused.args[0].code() not in COORDINATOR_IS_COMING:
                raise
            return False
        return True

    try:
        wait_until(committed, f"offsets of {group}")
    finally:
        consumer.close()


def groups_of(gateway: ClusterGateway) -> dict[str, ConsumerGroup]:
    found = gateway.consumer_groups()
    assert not found.missing
    return {group.name: group for group in found.value}


def test_every_group_shows_what_it_has_committed(
    gateway: ClusterGateway, cluster: LocalCluster, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehome.cluster.calls.groups.GROUPS_PER_REQUEST", 2)  # several rounds
    topic = topics.create([[1, 2], [2, 3]])
    topics.fill(topic, 20)
    wanted = {
        f"readers-{os.getpid()}-{number}": {TopicPartition(topic, number % 2): number}
        for number in range(7)
    }
    for name, positions in wanted.items():
        commit(cluster, name, positions)
    found = groups_of(gateway)
    assert {name: found[name].committed for name in wanted} == wanted
    assert {found[name].error for name in wanted} == {None}
    assert {found[name].state for name in wanted} == {"Empty"}

    snapshot = take_snapshot(gateway, datetime.now(UTC))
    rows = [row for row in snapshot.group_offsets.to_pylist() if row["group"] in wanted]
    assert rows == [
        {"group": name, **partition._asdict(), "committed_offset": offset}
        for name, positions in sorted(wanted.items())
        for partition, offset in positions.items()
    ]
    coordinators = {row["group"]: row["coordinator"] for row in snapshot.groups.to_pylist()}
    assert coordinators == {name: group.coordinator for name, group in found.items()}


def test_a_group_whose_offsets_may_not_be_read_says_which_right_is_missing(
    gateway_of: Callable[[str], ClusterGateway],
    secured_cluster: LocalCluster,
    secured_topics: Topics,
) -> None:
    topic = secured_topics.create([[1, 2]])
    secured_topics.fill(topic, 5)
    commit(secured_cluster, "auditors", {TopicPartition(topic, 0): 3})
    with granted(secured_cluster, "planner", *PLANNER):
        blind = take_snapshot(gateway_of("planner"), datetime.now(UTC))
        with granted(secured_cluster, "planner", ("describe", "group")):
            seeing = groups_of(gateway_of("planner"))
    rows = {row["group"]: row["error"] for row in blind.groups.to_pylist()}
    assert rows["auditors"] == (
        "GROUP_AUTHORIZATION_FAILED (30): needs the right Group Describe on auditors"
    )
    assert not len(blind.group_offsets)
    assert seeing["auditors"].committed == {TopicPartition(topic, 0): 3}


@pytest.mark.parametrize("tiers_known", [True, False])
def test_a_log_begins_where_its_first_records_were_deleted(
    gateway: ClusterGateway,
    cluster: LocalCluster,
    topics: Topics,
    monkeypatch: pytest.MonkeyPatch,
    tiers_known: bool,
) -> None:
    if not tiers_known:  # as brokers before 3.5 answer a question for the log on their own disk
        ask = gateway.offsets

        def offsets(replicas: list[ReplicaId], timestamp: int) -> object:
            old = timestamp == messages.EARLIEST_LOCAL
            unknown = broker_error(35)
            missing = {replica.broker: unknown for replica in replicas}
            return Partial({}, missing) if old else ask(replicas, timestamp)

        monkeypatch.setattr(gateway, "offsets", offsets)
    topic = topics.create([[1, 2], [3, 4]])
    topics.fill(topic, 50)
    admin = AdminClient(cluster.client_settings() | {"log_level": "0"})
    for future in admin.delete_records([Position(topic, 0, 30)]).values():
        future.result(120)
    leaders = [ReplicaId(topic, 0, 1), ReplicaId(topic, 1, 3)]

    def deleted() -> bool:
        found = gateway.log_start_offsets(leaders)
        return not found.missing and found.value == dict(zip(leaders, (30, 0), strict=True))

    wait_until(deleted, "the log to begin at 30")


def test_a_snapshot_shows_where_the_leaders_logs_begin_and_how_topics_are_cleaned(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[2, 1]], config={"cleanup.policy": "compact,delete"})
    snapshot = take_snapshot(gateway, datetime.now(UTC))
    replicas = [row for row in snapshot.replicas.to_pylist() if row["topic"] == topic]
    assert {row["broker"]: row["log_start_offset"] for row in replicas} == {2: 0, 1: None}
    policies = {row["topic"]: row["cleanup_policy"] for row in snapshot.topics.to_pylist()}
    assert set(policies[topic].split(",")) == {"compact", "delete"}
