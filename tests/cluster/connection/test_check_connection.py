"""The connection check names the cause. Real brokers, but for what they cannot be made to do."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.kafka.certificates import CertificateAuthority
from local.kafka.cluster import LocalCluster
from rehome.cluster.connection.check import check_connection
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.errors import ClusterUnreachableError
from tests.cluster.ending import BEYOND_PATIENCE_S, ends


def cause_of(settings: dict[str, str], *, timeout_s: float = BEYOND_PATIENCE_S) -> str:
    """The cause named for these settings; fails when it is named only as the time runs out."""
    with pytest.raises(ClusterUnreachableError) as raised:
        ends(lambda: check_connection(Connection.from_settings(settings), timeout_s))
    assert raised.value.cause.replace("_", " ") in str(raised.value)
    assert raised.value.next_step
    assert "secret" not in str(raised.value)
    return raised.value.cause


@contextmanager
def listening() -> Iterator[str]:
    """A port that accepts connections and stays silent, as the kernel does for a stopped broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def tls_server(certificate: Path) -> Iterator[str]:
    """A TLS port. Brokers refuse to start with an expired certificate, so none can show one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            with accepted, pytest.raises(ssl.SSLError), context.wrap_socket(accepted, True):
                pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(120)


def test_a_good_connection_is_reported_in_a_sentence(cluster: LocalCluster) -> None:
    sentence = check_connection(Connection.from_settings(cluster.client_settings()))
    assert cluster.cluster_id in sentence
    assert "brokers: 1, 2, 3, 4" in sentence


def test_a_secured_connection_is_reported_with_its_principal(secured_cluster: LocalCluster) -> None:
    sentence = check_connection(Connection.from_settings(secured_cluster.client_settings("nobody")))
    assert "SASL_SSL with SCRAM-SHA-512" in sentence
    assert "User:nobody" in sentence


def test_one_good_bootstrap_server_is_enough(cluster: LocalCluster) -> None:
    with listening() as silent:
        servers = f"localhost:1,{silent},{cluster.address(2)}"
        connection = Connection.from_settings({"bootstrap.servers": servers})
        assert ends(lambda: check_connection(connection, BEYOND_PATIENCE_S))


def test_a_refused_connection() -> None:
    assert cause_of({"bootstrap.servers": "127.0.0.1:1"}) == "refused"


def test_an_unknown_host() -> None:
    assert cause_of({"bootstrap.servers": "no-such-broker.invalid:9092"}) == "unknown_host"
    assert cause_of({"bootstrap.servers": "broker..invalid:9092"}) == "unknown_host"


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_broker_that_accepts_and_stays_silent(protocol: str) -> None:
    with listening() as silent:
        settings = {"bootstrap.servers": silent, "security.protocol": protocol}
        assert cause_of(settings, timeout_s=1.0) == "no_answer"


def test_a_file_that_the_connection_names_and_that_is_not_there(tmp_path: Path) -> None:
    with listening() as silent:
        for name in ("ca", "certificate"):
            settings = {"bootstrap.servers": silent, "security.protocol": "SSL"}
            settings[f"ssl.{name}.location"] = str(tmp_path / "gone.pem")
            with pytest.raises(ClusterUnreachableError, match=r"gone\.pem") as raised:
                check_connection(Connection.from_settings(settings), BEYOND_PATIENCE_S)
            assert raised.value.cause == "tls"
            assert "or the file that it names" in raised.value.next_step
            assert "trigger" not in str(raised.value)


def test_an_expired_certificate(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    expired = authority.issue(tmp_path / "broker.pem", "broker", expired=True)
    with tls_server(expired) as address:
        settings = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.write(tmp_path / "ca.pem")),
        }
        assert cause_of(settings) == "expired_certificate"


def test_a_certificate_for_another_host(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    certificate = authority.issue(tmp_path / "broker.pem", "broker", hosts=["b1.example"])
    with tls_server(certificate) as address:
        settings = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.write(tmp_path / "ca.pem")),
        }
        assert cause_of(settings) == "wrong_host"


def test_a_ca_that_did_not_sign_the_brokers_certificate(
    secured_cluster: LocalCluster, tmp_path: Path
) -> None:
    stranger = CertificateAuthority().write(tmp_path / "ca.pem")
    settings = secured_cluster.client_settings() | {"ssl.ca.location": str(stranger)}
    assert cause_of(settings) == "wrong_ca"


@pytest.mark.parametrize(
    "wrong", [{"sasl.password": "wrong-secret"}, {"sasl.username": "stranger"}]
)
def test_a_wrong_password_or_user(secured_cluster: LocalCluster, wrong: dict[str, str]) -> None:
    assert cause_of(secured_cluster.client_settings() | wrong) == "wrong_password"


def test_a_mechanism_that_is_not_enabled(secured_cluster: LocalCluster) -> None:
    settings = secured_cluster.client_settings() | {"sasl.mechanism": "SCRAM-SHA-256"}
    assert cause_of(settings) == "wrong_mechanism"


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT", "SSL"])
def test_the_wrong_protocol_for_a_sasl_ssl_listener(
    secured_cluster: LocalCluster, protocol: str
) -> None:
    settings = secured_cluster.client_settings() | {"security.protocol": protocol}
    assert cause_of(settings) == "wrong_protocol"


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_the_wrong_protocol_for_a_plaintext_listener(cluster: LocalCluster, protocol: str) -> None:
    settings = cluster.client_settings() | {
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "someone",
        "sasl.password": "some-secret",
    }
    assert cause_of(settings) == "wrong_protocol"


def test_the_most_telling_of_several_causes_is_named(secured_cluster: LocalCluster) -> None:
    settings = secured_cluster.client_settings() | {"sasl.password": "wrong-secret"}
    settings["bootstrap.servers"] = f"127.0.0.1:1,{secured_cluster.address(1)}"
    assert cause_of(settings) == "wrong_password"
