"""The certificates that the tests of connection checks are made with."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from local.kafka.certificates import CertificateAuthority


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


def _handshake(tmp_path: Path, served: Path, trusted: CertificateAuthority, host: str) -> None:
    """A TLS handshake over a socket pair; raises what the client raises."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(served)
    client_context = ssl.create_default_context(cafile=str(trusted.write(tmp_path / "ca.pem")))
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with theirs:
            try:
                server_context.wrap_socket(theirs, server_side=True).close()
            except OSError:
                return  # the client's side of it is what the test looks at

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with ours:
            client_context.wrap_socket(ours, server_hostname=host).close()
    finally:
        thread.join(120)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_server_certificate_is_good_for_the_loopback_names(
    tmp_path: Path, authority: CertificateAuthority, host: str
) -> None:
    served = authority.issue(tmp_path / "server.pem", "broker")
    _handshake(tmp_path, served, authority, host)
    assert served.stat().st_mode & 0o077 == 0, "others may read the key"


def test_an_expired_certificate_is_refused_as_expired(
    tmp_path: Path, authority: CertificateAuthority
) -> None:
    served = authority.issue(tmp_path / "server.pem", "broker", expired=True)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        _handshake(tmp_path, served, authority, "localhost")


def test_another_authoritys_certificate_is_not_trusted(
    tmp_path: Path, authority: CertificateAuthority
) -> None:
    served = authority.issue(tmp_path / "server.pem", "broker")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"self-signed|issuer|signature"):
        _handshake(tmp_path, served, CertificateAuthority(), "localhost")


def test_a_certificate_for_another_host_is_refused(
    tmp_path: Path, authority: CertificateAuthority
) -> None:
    served = authority.issue(tmp_path / "server.pem", "broker", hosts=["elsewhere.example"])
    with pytest.raises(ssl.SSLCertVerificationError, match="ostname"):
        _handshake(tmp_path, served, authority, "localhost")
