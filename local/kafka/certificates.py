"""Certificates for a cluster on the loopback interface, and bad ones for tests of the checks.

PEM throughout: Kafka's brokers, librdkafka, OpenSSL and Java's clients all read it (KIP-651).
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LOOPBACK = ("localhost", "127.0.0.1")
_DAY = datetime.timedelta(days=1)


class CertificateAuthority:
    """A CA whose key lives in memory only; make a second one for a CA that is not trusted."""

    def __init__(self, name: str = "Local test CA") -> None:
        self._name = _common_name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key()
        self._certificate = (
            _builder(self._name, self._name, public, *_validity(expired=False))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def write(self, path: Path) -> Path:
        """Write the CA's own certificate, for a client or a broker to trust."""
        path.write_bytes(_pem(self._certificate))
        return path

    def issue(
        self,
        path: Path,
        common_name: str,
        *,
        hosts: Sequence[str] = LOOPBACK,
        expired: bool = False,
    ) -> Path:
        """Write a key, its certificate and the CA's to one file, readable by its owner only.

        :param hosts: DNS names and IP addresses the certificate is good for.
        :param expired: the certificate ended yesterday; a broker refuses to start with it.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            _builder(_common_name(common_name), self._name, key.public_key(), *_validity(expired))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(map(_general_name, hosts)), critical=False)
            .add_extension(authority, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + _pem(certificate)
            + _pem(self._certificate)
        )
        return path


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    start: datetime.datetime,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _validity(expired: bool) -> tuple[datetime.datetime, datetime.datetime]:
    now = datetime.datetime.now(datetime.UTC)
    return (now - 10 * _DAY, now - _DAY) if expired else (now - _DAY, now + 30 * _DAY)


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
