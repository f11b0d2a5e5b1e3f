"""Brokers that die, hang or lose their controller: partial results, named reasons, bounded time.

On the secured cluster, so that hanging TLS handshakes are real ones; each test starts again what it
has stopped. Calls that must not wait for a silent broker use a gateway whose timeouts are longer
than any test.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.check import check_connection
from rehome.cluster.connection.keys import CONTROLLER_SERVERS
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import ClusterError, ClusterUnreachableError
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, LogDir, Partial, ReplicaId, TopicPartition
from tests.cluster.ending import BEYOND_PATIENCE_S, PATIENCE_S, ends
from tests.conftest import Topics

REQUEST_S, CONNECT_S = 4.0, 2.0
RATE = "follower.replication.throttled.rate"


@pytest.fixture
def waiting_long(secured_cluster: LocalCluster) -> Iterator[ClusterGateway]:
    """A gateway whose call does not end within a test if it waits for a silent broker."""
    with open_gateway(secured_cluster, waiting_long=True) as opened:
        yield opened


@pytest.fixture
def topic(secured_topics: Topics) -> str:
    return secured_topics.create([[1, 2, 3], [2, 3, 1]])


def open_gateway(
    cluster: LocalCluster, *, waiting_long: bool = False, **further: str
) -> ClusterGateway:
    connection = Connection.from_settings(cluster.client_settings() | further)
    request_s, connect_s = (BEYOND_PATIENCE_S,) * 2 if waiting_long else (REQUEST_S, CONNECT_S)
    return ClusterGateway(connection, request_timeout_s=request_s, connect_timeout_s=connect_s)


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
    secured_cluster: LocalCluster, topic: str, known_before: bool
) -> None:
    with open_gateway(secured_cluster) as gateway:

        def log_dirs() -> Partial[list[LogDir]] | None:
            """From the others' answers on: on a busy machine they may be late as well."""
            found = ends(gateway.describe_log_dirs)
            return found if {directory.broker for directory in found.value} == {1, 3, 4} else None

        def offsets() -> Partial[dict[ReplicaId, int | BrokerError]] | None:
            found = ends(lambda: gateway.log_end_offsets(replicas_of(topic)))
            return found if {replica.broker for replica in found.value} == {1, 3} else None

        if known_before:
            wait_until(lambda: not gateway.describe_log_dirs().missing, "every broker to be known")
        with paused(secured_cluster, 2):
            dirs = wait_until(log_dirs, "the log dirs of brokers 1, 3 and 4")
            assert dirs is not None
            assert dirs.missing.keys() == {2}
            assert dirs.missing[2].name == "REQUEST_TIMED_OUT"
            ends_found = wait_until(offsets, "the offsets at brokers 1 and 3")
            assert ends_found is not None
            assert ends_found.missing.keys() == {2}


def test_a_hanging_broker_holds_up_no_call_that_another_can_answer(
    secured_cluster: LocalCluster, waiting_long: ClusterGateway, topic: str
) -> None:
    part, gateway = TopicPartition(topic, 0), waiting_long

    def ask() -> None:
        assert 3 in gateway.describe_cluster().brokers
        assert topic in gateway.describe_topics()
        assert gateway.list_reassignments([part]) == {}
        found = gateway.describe_configs([ConfigResource.topic(topic)])
        assert isinstance(found[ConfigResource.topic(topic)], dict)
        assert gateway.alter_reassignments({part: [1, 2, 3]}) == {part: None}

    assert ends(gateway.list_reassignments) == {}
    with paused(secured_cluster, 3):
        for _ in range(5):
            ends(ask)


def test_a_hanging_broker_alone_is_reported_as_no_answer(secured_cluster: LocalCluster) -> None:
    settings = secured_cluster.client_settings() | {"bootstrap.servers": secured_cluster.address(2)}
    with paused(secured_cluster, 2), pytest.raises(ClusterUnreachableError) as raised:
        ends(lambda: check_connection(Connection.from_settings(settings), 1.0))
    assert raised.value.cause == "no_answer"


def test_a_dead_broker_is_named_and_reported_through_the_controllers_listener(
    secured_cluster: LocalCluster, waiting_long: ClusterGateway
) -> None:
    gateway = waiting_long
    assert gateway.describe_cluster().brokers.keys() == {1, 2, 3, 4}
    own = ConfigResource.broker(3)
    change = ConfigChange(own, RATE, ConfigOperation.SET, "1234567")
    servers = {CONTROLLER_SERVERS: f"127.0.0.1:1,{secured_cluster.controller_address}"}
    with killed(secured_cluster, 3):
        dirs = ends(lambda: gateway.describe_log_dirs([1, 2, 3, 4]))
        assert {directory.broker for directory in dirs.value} == {1, 2, 4}
        assert dirs.missing.keys() == {3}
        assert "ECONNREFUSED" in str(dirs.missing[3]) or dirs.missing[3].code == 8
        assert isinstance(ends(lambda: gateway.alter_configs([change]))[own], BrokerError)
        with open_gateway(secured_cluster, waiting_long=True, **servers) as knowing_controllers:
            assert ends(lambda: knowing_controllers.alter_configs([change])) == {own: None}
        wait_until(  # one broker's metadata may show it before another's
            lambda: (
                ends(lambda: gateway.describe_log_dirs([1, 2, 3, 4])).missing[3].name
                == "BROKER_NOT_AVAILABLE"
            ),
            "metadata without 3, so that it is no longer asked",
            240,
        )
        wait_until(
            lambda: gateway.describe_cluster().brokers.keys() == {1, 2, 4}, "the others alone"
        )

    def rate() -> str | None:
        found = gateway.describe_configs([own], [RATE])[own]
        return found[RATE].value if isinstance(found, dict) and RATE in found else None

    wait_until(lambda: rate() == "1234567", "the rate at the broker that came back")
    wait_until(lambda: not gateway.describe_log_dirs([1, 2, 3, 4]).missing, "all log dirs")
    undo = ConfigChange(own, RATE, ConfigOperation.DELETE)
    assert gateway.alter_configs([undo]) == {own: None}


def test_without_a_controller_reads_go_on_while_calls_wait_for_it(
    secured_cluster: LocalCluster, waiting_long: ClusterGateway, topic: str
) -> None:
    part = TopicPartition(topic, 0)

    def wait_for_it() -> None:
        with suppress(ClusterError):  # brokers wait for a controller for a minute
            waiting_long.alter_reassignments({part: [1, 2, 3]})

    def read() -> None:
        assert waiting_long.describe_topics([topic])[topic].error is None
        assert not waiting_long.describe_log_dirs().missing
        assert len(waiting_long.log_end_offsets(replicas_of(topic)).value) == 3

    waiting_long.list_reassignments()
    waiting = threading.Thread(target=wait_for_it)
    with open_gateway(secured_cluster) as gateway:
        gateway.list_reassignments()
        secured_cluster.stop_controller()
        try:
            waiting.start()
            for _ in range(5):
                ends(read)
            assert waiting.is_alive()
            with pytest.raises(
                ClusterError, match="AlterPartitionReassignments got no answer"
            ) as raised:
                ends(lambda: gateway.alter_reassignments({part: [1, 2, 3]}))
            assert "not known" in raised.value.state_left
            with pytest.raises(ClusterError, match="got no answer"):
                ends(lambda: gateway.elect_preferred_leaders([part]))
        finally:
            secured_cluster.start_controller()
    waiting.join(3 * PATIENCE_S)
    assert not waiting.is_alive()

    def answered() -> bool:
        try:
            return waiting_long.alter_reassignments({part: [1, 2, 3]}) == {part: None}
        except ClusterError:
            return False

    wait_until(answered, "the controller to serve again")


def test_a_cluster_that_is_gone_is_reported_with_the_cause(secured_cluster: LocalCluster) -> None:
    wrong = {"sasl.password": "wrong-secret"}
    with (
        open_gateway(secured_cluster, waiting_long=True, **wrong) as gateway,
        pytest.raises(ClusterUnreachableError) as raised,
    ):
        ends(gateway.describe_cluster)
    assert raised.value.cause == "wrong_password"
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    with (
        open_gateway(secured_cluster, waiting_long=True, **nowhere) as gateway,
        pytest.raises(ClusterUnreachableError) as raised,
    ):
        ends(gateway.list_reassignments)
    assert raised.value.cause == "refused"
