"""Brokers that give a snapshot no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.snapshot.model import Snapshot
from tests.cluster.snapshot.test_take_on_brokers import brokers_by_id, replicas_of, snapshot_of
from tests.conftest import Topics

HOSTS = [[1, 2], [2, 3], [3, 1]]
"""The fourth broker holds no replica: only the list of brokers shows it."""


@contextmanager
def paused(cluster: LocalCluster, *brokers: int) -> Iterator[None]:
    """They stay in the metadata all the while, and are in sync again afterwards."""
    for broker in brokers:
        cluster.pause(broker)
    try:
        yield
    finally:
        for broker in brokers:
            cluster.resume(broker)
        with ClusterGateway(Connection.from_settings(cluster.client_settings())) as gateway:
            wait_until(lambda: in_sync(gateway), "every replica to be in sync", 240)


def in_sync(gateway: ClusterGateway) -> bool:
    return all(
        state.isr == set(state.replicas)
        for topic in gateway.describe_topics().values()
        for state in topic.partitions.values()
    )


def snapshot_where(cluster: LocalCluster, condition: Callable[[Snapshot], bool]) -> Snapshot:
    """The first one that is so and has the answers of brokers 1 and 2: on a busy machine one of
    theirs may come late, too.
    """
    connection = Connection.from_settings(cluster.client_settings())
    with ClusterGateway(connection, request_timeout_s=2, connect_timeout_s=2) as gateway:

        def taken() -> Snapshot | None:
            with suppress(ClusterError):
                found = snapshot_of(gateway)
                rows = brokers_by_id(found)
                if rows[1]["answered"] and rows[2]["answered"] and condition(found):
                    return found
            return None

        found = wait_until(taken, "a snapshot with what brokers 1 and 2 answer", 240)
        assert found is not None
        return found


def shows_sizes_of_1_and_2_alone(snapshot: Snapshot, topic: str) -> bool:
    sized = {
        row["broker"]
        for row in replicas_of(snapshot, topic)
        if row["size_bytes"] is not None and row["log_end_offset"] is not None
    }
    return sized == {1, 2} and not brokers_by_id(snapshot)[3]["answered"]


def test_brokers_that_hang_are_rows_with_the_reason(cluster: LocalCluster, topics: Topics) -> None:
    topic = topics.create(HOSTS)
    with paused(cluster, 3, 4):
        hanging = snapshot_where(cluster, lambda found: shows_sizes_of_1_and_2_alone(found, topic))
    assert brokers_by_id(hanging)[3]["live"]
    assert "REQUEST_TIMED_OUT" in brokers_by_id(hanging)[3]["error"]
    assert not brokers_by_id(hanging)[4]["answered"]
    silent = {row["coordinator"]: row["error"] for row in hanging.groups.to_pylist()}
    assert "REQUEST_TIMED_OUT" in silent[3]


def test_a_broker_that_is_dead_is_a_row_with_the_reason(mortal: LocalCluster) -> None:
    def gone(found: Snapshot) -> bool:
        """No broker that was asked lists it; each learns of its death by itself."""
        row = brokers_by_id(found)[3]
        return not row["live"] and "BROKER_NOT_AVAILABLE" in row["error"]

    topic = Topics(mortal).create(HOSTS)
    mortal.kill(3)
    assert shows_sizes_of_1_and_2_alone(snapshot_where(mortal, gone), topic)
