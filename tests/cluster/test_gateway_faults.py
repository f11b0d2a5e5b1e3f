"""Brokers that die, hang or lose their controller: partial results, named reasons, bounded time.

A secured cluster of its own, so that hanging TLS handshakes are real ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from include.cluster.connection import CONTROLLER_SERVERS, Connection, check_connection
from include.cluster.errors import ClusterError, ClusterUnreachableError
from include.cluster.gateway import ClusterGateway
from include.cluster.model import BrokerError, ReplicaId, TopicPartition
from include.cluster.port import ConfigChange, ConfigOperation, ConfigResource
from local.kafka_cluster import LocalCluster, Security
from local.waiting import wait_until
from tests.conftest import Topics

REQUEST_S, CONNECT_S = 4.0, 2.0
# What scheduling on a busy machine may add.
GRACE_S = 2.0
RATE = "follower.replication.throttled.rate"


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("fragile"), 3, security=Security()) as running:
        yield running


@pytest.fixture
def gateway(fragile: LocalCluster) -> Iterator[ClusterGateway]:
    with open_gateway(fragile) as opened:
        yield opened


@pytest.fixture
def topic(fragile: LocalCluster) -> str:
    return Topics(fragile).create([[1, 2, 3], [2, 3, 1]])


def open_gateway(cluster: LocalCluster, **further: str) -> ClusterGateway:
    connection = Connection.from_settings(cluster.client_settings() | further)
    return ClusterGateway(connection, request_timeout_s=REQUEST_S, connect_timeout_s=CONNECT_S)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds + GRACE_S


@contextmanager
def paused(cluster: LocalCluster, broker: int) -> Iterator[None]:
    cluster.pause(broker)
    try:
        yield
    finally:
        cluster.resume(broker)
        cluster.wait_for_brokers(cluster.broker_ids)


@contextmanager
def killed(cluster: LocalCluster, broker: int) -> Iterator[None]:
    cluster.kill(broker)
    try:
        yield
    finally:
        cluster.restart(broker)


def replicas_of(topic: str) -> list[ReplicaId]:
    return [ReplicaId(topic, 0, broker) for broker in (1, 2, 3)]


@pytest.mark.parametrize("known_before", [True, False])
def test_a_hanging_broker_is_named_and_the_others_answers_are_kept(
    fragile: LocalCluster, topic: str, known_before: bool
) -> None:
    with open_gateway(fragile) as gateway:
        if known_before:
            assert not gateway.describe_log_dirs().missing
        with paused(fragile, 2):
            with within(1):
                assert 2 in gateway.describe_cluster().brokers
            with within(max(REQUEST_S, CONNECT_S)):
                dirs = gateway.describe_log_dirs()
            assert {directory.broker for directory in dirs.value} == {1, 3}
            assert dirs.missing.keys() == {2}
            assert dirs.missing[2].name == "REQUEST_TIMED_OUT"
            with within(max(REQUEST_S, CONNECT_S)):
                offsets = gateway.log_end_offsets(replicas_of(topic))
            assert {replica.broker for replica in offsets.value} == {1, 3}
            assert offsets.missing.keys() == {2}


def test_a_hanging_broker_holds_up_no_call_that_another_can_answer(
    fragile: LocalCluster, gateway: ClusterGateway, topic: str
) -> None:
    part = TopicPartition(topic, 0)
    assert gateway.list_reassignments() == {}
    with paused(fragile, 3):
        for _ in range(5):
            with within(1):
                assert topic in gateway.describe_topics()
                assert gateway.list_reassignments([part]) == {}
                found = gateway.describe_configs([ConfigResource.topic(topic)])
                assert isinstance(found[ConfigResource.topic(topic)], dict)
                assert gateway.alter_reassignments({part: [1, 2, 3]}) == {part: None}


def test_a_hanging_broker_alone_is_told_as_no_answer(fragile: LocalCluster) -> None:
    settings = fragile.client_settings() | {"bootstrap.servers": fragile.address(2)}
    with paused(fragile, 2), within(1), pytest.raises(ClusterUnreachableError) as raised:
        check_connection(Connection.from_settings(settings), 1.0)
    assert raised.value.cause == "no_answer"


def test_a_dead_broker_is_named_and_told_through_the_controllers_listener(
    fragile: LocalCluster, gateway: ClusterGateway
) -> None:
    assert gateway.describe_cluster().brokers.keys() == {1, 2, 3}
    own = ConfigResource.broker(3)
    change = ConfigChange(own, RATE, ConfigOperation.SET, "1234567")
    servers = {CONTROLLER_SERVERS: f"127.0.0.1:1,{fragile.controller_address}"}
    with killed(fragile, 3):
        with within(1):
            dirs = gateway.describe_log_dirs([1, 2, 3])
        assert {directory.broker for directory in dirs.value} == {1, 2}
        assert dirs.missing.keys() == {3}
        assert "ECONNREFUSED" in str(dirs.missing[3]) or dirs.missing[3].code == 8
        with within(1):
            assert isinstance(gateway.alter_configs([change])[own], BrokerError)
        with open_gateway(fragile, **servers) as knowing_controllers, within(1):
            assert knowing_controllers.alter_configs([change]) == {own: None}
        wait_until(
            lambda: gateway.describe_cluster().brokers.keys() == {1, 2}, "fresh metadata without 3"
        )
        with within(1):
            dirs = gateway.describe_log_dirs([1, 2, 3])
        assert dirs.missing[3].name == "BROKER_NOT_AVAILABLE"

    def rate() -> str | None:
        found = gateway.describe_configs([own], [RATE])[own]
        return found[RATE].value if isinstance(found, dict) and RATE in found else None

    wait_until(lambda: rate() == "1234567", "the rate at the broker that came back")
    assert not gateway.describe_log_dirs([1, 2, 3]).missing
    undo = ConfigChange(own, RATE, ConfigOperation.DELETE)
    assert gateway.alter_configs([undo]) == {own: None}


def test_without_a_controller_reads_go_on_beside_calls_that_wait_for_it(
    fragile: LocalCluster, gateway: ClusterGateway, topic: str
) -> None:
    part = TopicPartition(topic, 0)
    gateway.list_reassignments()
    raised: list[ClusterError] = []

    def wait_in_vain() -> None:
        with pytest.raises(ClusterError) as error:
            gateway.alter_reassignments({part: [1, 2, 3]})
        raised.append(error.value)

    fragile.stop_controller()
    try:
        waiting = threading.Thread(target=wait_in_vain)
        with within(2 * REQUEST_S + CONNECT_S):
            waiting.start()
            for _ in range(5):
                with within(0.5):
                    assert gateway.describe_topics([topic])[topic].error is None
                    assert not gateway.describe_log_dirs().missing
                    assert len(gateway.log_end_offsets(replicas_of(topic)).value) == 3
            assert waiting.is_alive()
            waiting.join()
        (error,) = raised
        assert "AlterPartitionReassignments got no answer" in str(error)
        assert "not known" in error.state_left
        with within(REQUEST_S + CONNECT_S), pytest.raises(ClusterError, match="got no answer"):
            gateway.elect_preferred_leaders([part])
    finally:
        fragile.start_controller()

    def answered() -> bool:
        try:
            return gateway.alter_reassignments({part: [1, 2, 3]}) == {part: None}
        except ClusterError:
            return False

    wait_until(answered, "the controller to serve again")


def test_a_cluster_that_is_gone_is_told_with_the_cause(fragile: LocalCluster) -> None:
    with open_gateway(fragile, **{"sasl.password": "wrong-secret"}) as gateway:
        with within(1), pytest.raises(ClusterUnreachableError) as raised:
            gateway.describe_cluster()
        assert raised.value.cause == "wrong_password"
    with open_gateway(fragile, **{"bootstrap.servers": "127.0.0.1:1"}) as gateway:
        with within(1), pytest.raises(ClusterUnreachableError) as raised:
            gateway.list_reassignments()
        assert raised.value.cause == "refused"
