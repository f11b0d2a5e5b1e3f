"""The TLS context of kafka-python and of the check; librdkafka makes its own of the same files."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from rehome.errors import InvalidRequestError
from rehome.private_files import private_file


@dataclass(frozen=True, slots=True)
class Tls:
    """What is trusted, and what is presented.

    :param ca_location: file with the CAs to trust; None means those of the system.
    :param ca_pem: the same as text.
    :param certificate_location: this client's certificate, for mutual TLS; or ``certificate_pem``.
    :param key_location: its private key; or ``key_pem``.
    :param verify_host: whether the certificate must name the host that was dialled.
    """

    ca_location: str | None = None
    ca_pem: str | None = field(default=None, repr=False)
    certificate_location: str | None = None
    certificate_pem: str | None = field(default=None, repr=False)
    key_location: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    verify_certificate: bool = True
    verify_host: bool = True

    @property
    def has_certificate(self) -> bool:
        """Whether this client presents one."""
        return bool(self.certificate_location or self.certificate_pem)

    def librdkafka(self) -> dict[str, str | bool]:
        """Settings of a confluent-kafka client."""
        given = {
            "ssl.ca.location": self.ca_location,
            "ssl.ca.pem": self.ca_pem,
            "ssl.certificate.location": self.certificate_location,
            "ssl.certificate.pem": self.certificate_pem,
            "ssl.key.location": self.key_location,
            "ssl.key.pem": self.key_pem,
            "ssl.key.password": self.key_password,
        }
        return {
            "ssl.endpoint.identification.algorithm": "https" if self.verify_host else "none",
            "enable.ssl.certificate.verification": self.verify_certificate,
            **{key: value for key, value in given.items() if value},
        }

    def context(self) -> ssl.SSLContext:
        """A TLS context that trusts and presents this.

        :raises InvalidRequestError: when a file is missing or is not what it should be.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify_host and self.verify_certificate
        if not self.verify_certificate:
            context.verify_mode = ssl.CERT_NONE
        self._trust(context)
        if self.has_certificate:
            self._present(context)
        return context

    def _trust(self, context: ssl.SSLContext) -> None:
        try:
            if self.ca_location or self.ca_pem:
                context.load_verify_locations(cafile=self.ca_location, cadata=self.ca_pem)
            else:
                context.load_default_certs()
        except (OSError, ssl.SSLError) as error:
            source = f"ssl.ca.location {self.ca_location}" if self.ca_location else "ssl.ca.pem"
            raise InvalidRequestError([f"{source} cannot be used: {error}."]) from error

    def _present(self, context: ssl.SSLContext) -> None:
        """Python's TLS reads certificates from files only: text is in one for a moment."""
        password = self.key_password or ""
        try:
            if not (self.certificate_pem or self.key_pem):
                context.load_cert_chain(str(self.certificate_location), self.key_location, password)
                return
            with tempfile.TemporaryDirectory(prefix="rehome-") as scratch:  # its mode is 0700
                certificate = _file(scratch, self.certificate_pem, self.certificate_location)
                key = _file(scratch, self.key_pem, self.key_location)
                context.load_cert_chain(str(certificate), key, password)
        except (OSError, ssl.SSLError) as error:
            location = self.certificate_location or "(ssl.certificate.pem)"
            raise InvalidRequestError([f"ssl.certificate.location {location}: {error}."]) from error


def _file(folder: str, text: str | None, location: str | None) -> str | None:
    if not text:
        return location
    file = Path(tempfile.mkstemp(dir=folder, suffix=".pem")[1])
    private_file(file)
    file.write_text(text)
    return str(file)
