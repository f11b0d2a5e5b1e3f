"""Brokers that give a snapshot no answer."""

from __future__ import annotations

from include.cluster.connection.settings import Connection
from include.cluster.gateway import ClusterGateway
from include.cluster.snapshot.model import Snapshot
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from tests.cluster.snapshot.test_take_on_brokers import brokers_by_id, replicas_of, snapshot_of
from tests.conftest import Topics


def gone(found: Snapshot, broker: int) -> bool:
    """Whether no broker that was asked lists this one; each learns of its death by itself."""
    row = brokers_by_id(found)[broker]
    return not row["live"] and "BROKER_NOT_AVAILABLE" in row["error"]


def test_a_broker_that_hangs_or_dies_is_a_row_with_the_reason(
    mortal: LocalCluster,
) -> None:
    """The fourth broker holds no replica: only the list of brokers shows it."""
    cluster = mortal
    topic = Topics(cluster).create([[1, 2], [2, 3], [3, 1]])
    connection = Connection.from_settings(cluster.client_settings())
    with ClusterGateway(connection, request_timeout_s=2, connect_timeout_s=2) as gateway:
        cluster.pause(3)
        cluster.pause(4)
        hanging = snapshot_of(gateway)
        cluster.resume(4)
        cluster.kill(3)
        dead = wait_until(
            lambda: next((found for found in [snapshot_of(gateway)] if gone(found, 3)), None),
            "broker 3 to leave the metadata of every broker",
        )
    assert dead is not None
    assert brokers_by_id(hanging)[3]["live"]
    assert "REQUEST_TIMED_OUT" in brokers_by_id(hanging)[3]["error"]
    assert not brokers_by_id(hanging)[4]["answered"]
    silent = {row["coordinator"]: row["error"] for row in hanging.groups.to_pylist()}
    assert "REQUEST_TIMED_OUT" in silent[3]
    for snapshot in (hanging, dead):
        answered = {broker: row["answered"] for broker, row in brokers_by_id(snapshot).items()}
        assert answered.items() >= {1: True, 2: True, 3: False}.items()
        sized = {
            row["broker"]
            for row in replicas_of(snapshot, topic)
            if row["size_bytes"] is not None and row["log_end_offset"] is not None
        }
        assert sized == {1, 2}
