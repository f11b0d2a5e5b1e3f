"""What Rehome uses of kafka-python that its authors may change without notice.

When an upgrade breaks one of the first tests, ``rehome.cluster.clients.wire`` and the messages
have to follow; nothing else in the project knows these names.
"""

from __future__ import annotations

import inspect
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import get_sasl_mechanism
from kafka.net.selector import NetworkSelector
from kafka.protocol import admin
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.parser import KafkaProtocol

from local.process.waiting import wait_until
from rehome.cluster.clients.wire import NoAnswerError, Wire, metadata_request
from rehome.cluster.connection.settings import Connection
from tests.cluster.ending import BEYOND_PATIENCE_S, ends

WIRE_LOG = "rehome.cluster.clients.wire"
INCLUDE = Path(__file__).parents[3] / "include" / "rehome"


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (NetworkSelector, "start", []),
        (NetworkSelector, "stop", ["timeout_ms"]),
        (NetworkSelector, "close", []),
        (NetworkSelector, "sleep", ["delay"]),
        (NetworkSelector, "call_soon_threadsafe", ["callback"]),
        (
            KafkaConnectionManager,
            "get_connection",
            ["node_id", "timeout_ms", "refresh_metadata_on_err"],
        ),
        (KafkaConnectionManager, "wait_for", ["future", "timeout_ms"]),
        (KafkaConnectionManager, "call_soon", ["coro", "args"]),
        (KafkaConnectionManager, "connection_delay", ["node_id"]),
        (KafkaConnectionManager, "close", []),
        (KafkaConnection, "send_request", ["request", "request_timeout_ms"]),
        (KafkaConnection, "close", ["error"]),
        (KafkaProtocol, "send_request", ["request"]),
        (KafkaProtocol, "send_bytes", []),
        (KafkaProtocol, "receive_bytes", ["data"]),
    ],
)
def test_the_private_interface_is_as_it_was(owner: type, name: str, parameters: list[str]) -> None:
    assert set(parameters) <= inspect.signature(getattr(owner, name)).parameters.keys()


def test_settings_of_the_private_manager_are_as_they_were() -> None:
    # It drops settings it does not know without a word.
    for setting in (
        "request_timeout_ms",
        "socket_connection_setup_timeout_ms",
        "socket_connection_setup_timeout_max_ms",
        "reconnect_backoff_max_ms",
        "max_in_flight_requests_per_connection",
        "receive_message_max_bytes",
        "ssl_context",
        "sasl_plain_password",
        "sasl_oauth_token_provider",
        "sasl_kerberos_service_name",
    ):
        assert setting in KafkaConnectionManager.DEFAULT_CONFIG


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (admin.AlterPartitionReassignmentsRequest, 1),
        (admin.ListPartitionReassignmentsRequest, 0),
        (admin.DescribeLogDirsRequest, 5),
        (admin.AlterReplicaLogDirsRequest, 2),
        (admin.DescribeConfigsRequest, 4),
        (admin.IncrementalAlterConfigsRequest, 1),
        (ListOffsetsRequest, 6),
        (MetadataRequest, 10),
    ],
)
def test_messages_use_versions_with_the_fields_that_rehome_needs(
    message: Any, version: int
) -> None:
    assert message.min_version <= version <= message.max_version


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_mechanisms_can_still_be_driven_by_hand(mechanism: str) -> None:
    client = get_sasl_mechanism(mechanism)(
        host="b1",
        sasl_mechanism=mechanism,
        sasl_plain_username="someone",
        sasl_plain_password="something",
    )
    assert b"someone" in client.auth_bytes()
    assert not client.is_done()


def test_only_these_modules_know_kafka_python() -> None:
    knowing = {
        path.relative_to(INCLUDE).as_posix()
        for path in INCLUDE.rglob("*.py")
        if "from kafka" in path.read_text() or "import kafka." in path.read_text()
    }
    assert knowing <= {
        "cluster/clients/wire.py",
        "cluster/messages/admin.py",
        "cluster/messages/configs.py",
        "cluster/calls/groups.py",
        "cluster/connection/check.py",
        "cluster/connection/logins.py",
    }


@contextmanager
def silent_servers(count: int) -> Iterator[list[str]]:
    """Ports that accept and never answer; they count whom they let in."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        yield [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
    finally:
        for server in servers:
            server.close()


@contextmanager
def wire_to_silent_servers(protocol: str) -> Iterator[Wire]:
    """A wire that waits half a second for a connection, and much longer for an answer."""
    with silent_servers(2) as addresses:
        settings = {"bootstrap.servers": ",".join(addresses), "security.protocol": protocol}
        wire = Wire(
            Connection.from_settings(settings),
            client_id="test",
            request_timeout_s=BEYOND_PATIENCE_S,
            connect_timeout_s=0.5,
        )
        with closing(wire):
            yield wire


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_connection_that_is_not_set_up_in_time_is_no_late_answer(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    with wire_to_silent_servers(protocol) as wire:
        assert ends(lambda: wire.ask_bootstrap(metadata_request([]))) == []
    reasons = [record.getMessage() for record in caplog.records if record.name == WIRE_LOG]
    assert len(reasons) == 2
    assert all("no connection was ready within 0.5 s" in reason for reason in reasons)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_connecting_is_bounded_though_the_library_sets_no_limit(protocol: str) -> None:
    with wire_to_silent_servers(protocol) as wire:
        for _ in range(3):
            with pytest.raises(NoAnswerError, match=r"within 0\.5 s") as raised:
                ends(wire.metadata)
            assert raised.value.error.code == 7
    wait_until(
        lambda: not [thread for thread in threading.enumerate() if "kafka-io-test" in thread.name],
        "the loop's thread to end",
    )
