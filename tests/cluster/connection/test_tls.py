"""Certificates as files and as text."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives import serialization

from local.kafka.certificates import CertificateAuthority
from rehome.cluster.connection.settings import Connection
from rehome.errors import InvalidRequestError

SSL = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL"}
PASSWORD = "key-secret"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate, and its private key under a password."""
    whole = CertificateAuthority().issue(tmp_path / "whole.pem", "alice").read_bytes()
    key = serialization.load_pem_private_key(whole, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    certificate = tmp_path / "certificate.pem"
    certificate.write_bytes(whole[whole.index(b"-----BEGIN CERTIFICATE") :])
    (tmp_path / "key.pem").write_bytes(locked)
    return certificate, tmp_path / "key.pem"


def accepted(settings: dict[str, str]) -> Connection:
    """Both clients take these settings."""
    connection = Connection.from_settings(SSL | settings)
    connection.tls.context()
    AdminClient(connection.librdkafka_settings() | {"log_level": 0})
    return connection


@pytest.mark.slow
def test_certificate_and_key_are_files_or_text_or_one_of_each(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = files
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    password = {"ssl.key.password": PASSWORD}
    at = {"ssl.certificate.location": str(certificate)}
    text = {"ssl.certificate.pem": certificate.read_text()}
    for ours in (at, text):
        for theirs in ({"ssl.key.location": str(key)}, {"ssl.key.pem": key.read_text()}):
            connection = accepted(ours | theirs | password)
            assert connection.principal == "the client certificate's principal"
            assert "PRIVATE KEY" not in repr(connection)
            assert PASSWORD not in repr(connection)
    assert not list(scratch.iterdir()), "text was in a file for a moment only"


def test_a_key_for_a_moment_in_a_file_is_closed_to_others(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = files
    modes: set[int] = set()
    write = Path.write_text

    def seen(path: Path, text: str) -> int:
        written = write(path, text)
        modes.add(path.stat().st_mode & 0o777)
        modes.add(path.parent.stat().st_mode & 0o077)
        return written

    monkeypatch.setattr(Path, "write_text", seen)
    before = os.umask(0)
    try:
        accepted(
            {
                "ssl.certificate.location": str(certificate),
                "ssl.key.pem": key.read_text(),
                "ssl.key.password": PASSWORD,
            }
        )
    finally:
        os.umask(before)
    assert modes == {0o600, 0}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ssl.key.pem": "x"}, "need ssl.certificate.location or ssl.certificate.pem"),
        ({"ssl.ca.pem": "x", "ssl.ca.location": "/y"}, "ssl.ca.location and ssl.ca.pem name"),
        (
            {"ssl.certificate.pem": "x", "ssl.certificate.location": "/y"},
            "ssl.certificate.location and ssl.certificate.pem name the same",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        Connection.from_settings(SSL | wrong)


def test_text_that_is_no_certificate_is_refused_by_both(files: tuple[Path, Path]) -> None:
    connection = Connection.from_settings(
        SSL | {"ssl.certificate.pem": "none", "ssl.key.location": str(files[1])}
    )
    with pytest.raises(InvalidRequestError, match=r"\(ssl\.certificate\.pem\)"):
        connection.tls.context()
    with pytest.raises(KafkaException):
        AdminClient(connection.librdkafka_settings() | {"log_level": 0})
