"""A snapshot of real brokers says what they are like, and who did not say anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import MissingRightError
from rehome.cluster.snapshot.columns import FOLLOWER_THROTTLED, LEADER_THROTTLED, rack_path
from rehome.cluster.snapshot.model import BROKERS, LOG_DIRS, REPLICAS, TOPICS, Snapshot
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import LogDir, Partial, ReplicaId, TopicPartition
from tests.conftest import Topics
from tests.versions.since import honours_default

RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)

COLUMNS = ("leader_throttled_rate", "follower_throttled_rate", "log_dir_throttled_rate")


def snapshot_of(gateway: ClusterGateway) -> Snapshot:
    return take_snapshot(gateway, datetime.now(UTC))


def replicas_of(snapshot: Snapshot, topic: str) -> list[dict[str, Any]]:
    return [row for row in snapshot.replicas.to_pylist() if row["topic"] == topic]


def topic_row(snapshot: Snapshot, topic: str) -> dict[str, Any]:
    return next(row for row in snapshot.topics.to_pylist() if row["topic"] == topic)


def brokers_by_id(snapshot: Snapshot) -> dict[int, dict[str, Any]]:
    return {row["broker"]: row for row in snapshot.brokers.to_pylist()}


@pytest.fixture
def slow_copies(gateway: ClusterGateway) -> Iterator[None]:
    """Copies of listed replicas, and between log dirs, crawl while the test runs."""
    resource = ConfigResource.cluster_default()
    slow = [ConfigChange(resource, key, ConfigOperation.SET, "1000") for key in RATES]
    assert set(gateway.alter_configs(slow).values()) == {None}
    yield
    gateway.alter_configs([ConfigChange(resource, key, ConfigOperation.DELETE) for key in RATES])


def test_tables_follow_their_schemas(gateway: ClusterGateway, cluster: LocalCluster) -> None:
    taken_at = datetime.now(UTC)
    snapshot = take_snapshot(gateway, taken_at)
    assert snapshot.cluster_id == cluster.cluster_id
    assert snapshot.taken_at == taken_at
    assert snapshot.brokers.schema == BROKERS
    assert snapshot.log_dirs.schema == LOG_DIRS
    assert snapshot.topics.schema == TOPICS
    assert snapshot.replicas.schema == REPLICAS


@pytest.mark.usefixtures("slow_copies")
def test_rates_that_are_set_for_one_broker_or_for_all_are_in_the_snapshot(
    gateway: ClusterGateway,
) -> None:
    own = ConfigResource.broker(2)
    gateway.alter_configs([ConfigChange(own, RATES[0], ConfigOperation.SET, "5000000")])
    try:

        def rates() -> dict[int, list[Any]] | None:
            """The change reaches brokers a little later."""
            brokers = brokers_by_id(snapshot_of(gateway))
            assert [row["config_error"] for row in brokers.values()] == [None] * len(brokers)
            found = {broker: [row[name] for name in COLUMNS] for broker, row in brokers.items()}
            return found if found[2][0] == 5_000_000 and found[1][0] else None

        found = wait_until(rates, "the rates to be in a snapshot")
    finally:
        gateway.alter_configs([ConfigChange(own, RATES[0], ConfigOperation.DELETE)])
    assert found[2] == [5_000_000, 1000, 1000]
    assert found[1] == [1000, 1000, 1000]


def test_brokers_come_with_their_rack_paths_and_log_dirs(
    gateway: ClusterGateway, cluster: LocalCluster
) -> None:
    snapshot = snapshot_of(gateway)
    brokers = brokers_by_id(snapshot)
    assert {broker: row["rack"] for broker, row in brokers.items()} == cluster.racks
    assert all(row["rack_path"] == rack_path(row["rack"]) for row in brokers.values())
    assert all(row["live"] and row["answered"] and not row["error"] for row in brokers.values())
    expected = [
        (broker, str(path)) for broker in cluster.broker_ids for path in cluster.log_dirs(broker)
    ]
    rows = snapshot.log_dirs.to_pylist()
    assert [(row["broker"], row["log_dir"]) for row in rows] == sorted(expected)
    assert all(0 < row["usable_bytes"] < row["total_bytes"] for row in rows)
    assert not any(row["offline"] or row["cordoned"] or row["stray_replicas"] for row in rows)


def test_replicas_come_in_stored_order_with_size_and_offset(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[2, 1, 3], [4, 3, 2]])
    topics.fill(topic, messages=50)
    rows = replicas_of(snapshot_of(gateway), topic)
    assert [(row["partition"], row["broker"], row["position"]) for row in rows] == [
        (0, 2, 0),
        (0, 1, 1),
        (0, 3, 2),
        (1, 4, 0),
        (1, 3, 1),
        (1, 2, 2),
    ]
    assert [row["is_leader"] for row in rows] == [True, False, False, True, False, False]
    assert all(row["in_isr"] and row["log_end_offset"] == 50 for row in rows)
    assert all(row["size_bytes"] >= 50 * 1000 and row["log_dir"] for row in rows)
    assert not any(row["adding"] or row["removing"] or row["future_log_dir"] for row in rows)


def test_topics_come_with_the_configs_that_a_plan_needs(
    gateway: ClusterGateway, topics: Topics
) -> None:
    config = {"min.insync.replicas": "2", LEADER_THROTTLED: "0:1,0:2", FOLLOWER_THROTTLED: "*"}
    topic = topics.create([[1, 2, 3], [2, 3, 1]], config=config)
    row = topic_row(snapshot_of(gateway), topic)
    assert row["partitions"] == 2
    assert row["replication_factor"] == 3
    assert row["min_insync_replicas"] == 2
    assert row["leader_throttled_replicas"] == "0:1,0:2"
    assert row["follower_throttled_replicas"] == "*"
    assert row["visible"]
    assert not row["internal"]
    assert len(row["topic_id"]) > 20


@pytest.mark.usefixtures("slow_copies")
@honours_default
def test_a_reassignment_in_flight_shows_what_is_added_and_removed(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]], config={LEADER_THROTTLED: "*", FOLLOWER_THROTTLED: "*"})
    topics.fill(topic, messages=2000, size_bytes=5_000)  # 1 MB of it every 11 s
    partition = TopicPartition(topic, 0)
    assert gateway.alter_reassignments({partition: [1, 3]}) == {partition: None}

    def shown() -> dict[int, dict[str, Any]] | None:
        """All three replicas, once the brokers' metadata has caught up with the controller."""
        rows = {row["broker"]: row for row in replicas_of(snapshot_of(gateway), topic)}
        return rows if rows.keys() == {1, 2, 3} else None

    try:
        rows = wait_until(shown, "the replica that is being added", 240)
    finally:
        gateway.alter_reassignments({partition: None})
    assert [broker for broker, row in rows.items() if row["adding"]] == [3]
    assert [broker for broker, row in rows.items() if row["removing"]] == [2]
    assert not rows[3]["in_isr"]
    assert rows[3]["log_end_offset"] < rows[1]["log_end_offset"] == 2000


@pytest.mark.usefixtures("slow_copies")
@honours_default
def test_a_log_dir_move_shows_where_it_is_going(
    gateway: ClusterGateway, topics: Topics, cluster: LocalCluster
) -> None:
    topic = topics.create([[1]])
    topics.fill(topic, messages=2000, size_bytes=5_000)  # 1 MB of it every 11 s
    (before,) = replicas_of(snapshot_of(gateway), topic)
    other = next(str(path) for path in cluster.log_dirs(1) if str(path) != before["log_dir"])
    gateway.alter_replica_log_dirs({ReplicaId(topic, 0, 1): other})

    def moving() -> dict[str, Any] | None:
        (row,) = replicas_of(snapshot_of(gateway), topic)
        return row if row["future_log_dir"] else None

    row = wait_until(moving, "the future log", interval_s=0.02)
    assert row is not None
    assert row["future_log_dir"] == other
    assert row["log_dir"] == before["log_dir"]
    assert row["future_size_bytes"] < row["size_bytes"]


class TopicCreatedWhileReading(ClusterGateway):
    """A topic appears between the reading of metadata and that of log dirs."""

    create: Callable[[], str]

    def describe_log_dirs(
        self,
        brokers: Collection[int] | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> Partial[list[LogDir]]:
        self.created = self.create()
        return super().describe_log_dirs(brokers, partitions)


def test_a_topic_created_while_reading_is_not_taken_for_a_hidden_one(
    cluster: LocalCluster, topics: Topics
) -> None:
    with TopicCreatedWhileReading(Connection.from_settings(cluster.client_settings())) as gateway:
        gateway.create = lambda: topics.create([[1, 2]])
        snapshot = snapshot_of(gateway)
    assert snapshot.hidden_topics == ()
    assert gateway.created not in snapshot.topics.column("topic").to_pylist()


@pytest.fixture
def planner_sees(secured_cluster: LocalCluster) -> Iterator[None]:
    """The planner may see topics named seen-…, and nothing else."""
    rights = [
        ("describe", "cluster", "kafka-cluster", "literal"),
        ("describe", "topic", "seen-", "prefixed"),
        ("describe_configs", "topic", "seen-", "prefixed"),
    ]
    for right in rights:
        secured_cluster.allow("planner", *right)
    yield
    for right in rights:
        secured_cluster.revoke("planner", *right)


@pytest.mark.usefixtures("planner_sees")
def test_a_topic_hidden_from_the_principal_is_reported(
    gateway_of: Callable[[str], ClusterGateway], secured_topics: Topics
) -> None:
    seen = secured_topics.create([[1, 2]], name="seen-payments")
    hidden = secured_topics.create([[1, 2]], name="salaries")
    snapshot = snapshot_of(gateway_of("planner"))
    others = {"__consumer_offsets"}  # where a test before has committed offsets
    assert {*snapshot.hidden_topics} - others == {hidden}
    assert topic_row(snapshot, seen)["visible"]
    assert not topic_row(snapshot, hidden)["visible"]
    assert replicas_of(snapshot, hidden) == []


def test_a_missing_right_is_named_instead_of_an_empty_snapshot(
    gateway_of: Callable[[str], ClusterGateway],
) -> None:
    with pytest.raises(MissingRightError, match="Cluster Describe"):
        snapshot_of(gateway_of("nobody"))
