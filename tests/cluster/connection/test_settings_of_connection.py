from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest

from local.kafka.certificates import CertificateAuthority
from rehome.cluster.connection.keys import CONTROLLER_SERVERS, HOST_CHECK
from rehome.cluster.connection.settings import Connection
from rehome.errors import InvalidRequestError

SECURED = {
    "bootstrap.servers": "b1:9093,b2:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanisms": "SCRAM-SHA-512",
    "sasl.username": "rehome",
    "sasl.password": "s3cret-word",
}


def test_plaintext_settings_reach_both_clients() -> None:
    connection = Connection.from_settings({"bootstrap.servers": "b1:9092, b2:9093"})
    assert connection.librdkafka_settings() == {
        "bootstrap.servers": "b1:9092,b2:9093",
        "security.protocol": "PLAINTEXT",
    }
    theirs = connection.kafka_python_settings()
    assert theirs["bootstrap_servers"] == ["b1:9092", "b2:9093"]
    assert theirs["security_protocol"] == "PLAINTEXT"
    assert theirs["ssl_context"] is None


def test_sasl_settings_reach_both_clients() -> None:
    connection = Connection.from_settings(SECURED)
    ours, theirs = connection.librdkafka_settings(), connection.kafka_python_settings()
    assert ours["sasl.mechanism"] == theirs["sasl_mechanism"] == "SCRAM-SHA-512"
    assert ours["sasl.username"] == theirs["sasl_plain_username"] == "rehome"
    assert ours["sasl.password"] == theirs["sasl_plain_password"] == "s3cret-word"


def test_certificates_are_verified_unless_set_otherwise() -> None:
    strict = Connection.from_settings(SECURED).tls.context()
    assert strict.verify_mode is ssl.CERT_REQUIRED
    assert strict.check_hostname
    assert strict.minimum_version is ssl.TLSVersion.TLSv1_2

    any_host = Connection.from_settings(SECURED | {"ssl.endpoint.identification.algorithm": "none"})
    assert not any_host.tls.context().check_hostname
    assert any_host.librdkafka_settings()["ssl.endpoint.identification.algorithm"] == "none"

    trusting = Connection.from_settings(SECURED | {"enable.ssl.certificate.verification": "false"})
    assert trusting.tls.context().verify_mode is ssl.CERT_NONE
    assert trusting.librdkafka_settings()["enable.ssl.certificate.verification"] is False


@pytest.mark.parametrize(
    ("said", "verified"), [("https", True), ("HTTPS", True), ("none", False), ("None", False)]
)
def test_whether_the_host_is_verified_may_be_said_in_any_case(said: str, verified: bool) -> None:
    connection = Connection.from_settings(SECURED | {HOST_CHECK: said})
    assert connection.tls.context().check_hostname is verified
    assert connection.librdkafka_settings()[HOST_CHECK] == ("https" if verified else "none")


@pytest.mark.parametrize("said", ["htps", "", "false", "ldaps"])
def test_an_unknown_host_verification_is_refused(said: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{HOST_CHECK} is '{said}'; use https or none"):
        Connection.from_settings(SECURED | {HOST_CHECK: said})


def test_the_ca_may_be_a_file_or_text(tmp_path: Path) -> None:
    ca = CertificateAuthority().write(tmp_path / "ca.pem")
    for settings in ({"ssl.ca.location": str(ca)}, {"ssl.ca.pem": ca.read_text()}):
        connection = Connection.from_settings(SECURED | settings)
        assert len(connection.tls.context().get_ca_certs()) == 1
        assert settings.items() <= connection.librdkafka_settings().items()


def test_the_password_shows_in_no_representation() -> None:
    connection = Connection.from_settings(SECURED | {"ssl.key.password": "other-word"})
    for text in (repr(connection), str(connection), f"{connection!r}", connection.principal):
        assert "s3cret-word" not in text
        assert "other-word" not in text


def test_the_library_that_logs_passwords_at_debug_is_kept_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from kafka.admin import KafkaAdminClient

    with caplog.at_level(logging.DEBUG), pytest.raises(ValueError, match="client_dns_lookup"):
        # Its constructor writes every setting it was given, before it checks them.
        KafkaAdminClient(sasl_plain_password="s3cret-word", client_dns_lookup="no such")
    assert "s3cret-word" not in caplog.text


def test_the_controllers_own_listener_is_kept_from_both_clients() -> None:
    settings = SECURED | {CONTROLLER_SERVERS: "c1:9094,[::1]:9095"}
    connection = Connection.from_settings(settings)
    assert CONTROLLER_SERVERS not in connection.librdkafka_settings()
    controllers = connection.of_controllers()
    assert controllers is not None
    assert controllers.bootstrap_servers == (("c1", 9094), ("::1", 9095))
    assert controllers.principal == "User:rehome"
    assert Connection.from_settings(SECURED).of_controllers() is None


def test_settings_of_producers_and_consumers_are_let_be() -> None:
    shared = {"bootstrap.servers": "b1:9092", "group.id": "g", "auto.offset.reset": "earliest"}
    assert "group.id" not in Connection.from_settings(shared).librdkafka_settings()


def test_every_problem_is_listed_at_once() -> None:
    with pytest.raises(InvalidRequestError) as raised:
        Connection.from_settings(
            {
                "bootstrap.servers": "b1:port",
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-1",
                "ssl.keystore.location": "/x.p12",
                "enable.ssl.certificate.verification": "perhaps",
            }
        )
    text = str(raised.value)
    for part in (
        "'b1:port' is not host:port",
        "sasl.mechanism is SCRAM-SHA-1",
        "ssl.keystore.location is not supported",
        "'perhaps'",
        "Correct the connection's extra, then clear the task, with what comes after it.",
    ):
        assert part in text


@pytest.mark.parametrize("settings", [{}, {"bootstrap.servers": " "}])
def test_without_a_bootstrap_server_there_is_no_connection(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match=r"bootstrap\.servers is missing"):
        Connection.from_settings(settings)


def test_a_missing_ca_file_is_named() -> None:
    connection = Connection.from_settings(SECURED | {"ssl.ca.location": "/no/such/ca.pem"})
    with pytest.raises(InvalidRequestError, match=r"/no/such/ca\.pem"):
        connection.tls.context()
