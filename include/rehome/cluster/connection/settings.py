"""One set of librdkafka settings, as an Airflow connection of type kafka holds it, for two clients.

confluent-kafka takes the settings nearly as they are; kafka-python needs them translated. What
cannot be translated faithfully is refused here, so that both clients always speak to the same
cluster as the same principal.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rehome.cluster.connection.keys import (
    CONTROLLER_SERVERS,
    HOST_CHECK,
    KEYS,
    MECHANISMS,
    POLICY,
    PROTOCOLS,
)
from rehome.errors import InvalidRequestError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Settings of producers and consumers: one Airflow connection often serves them too, and an
# admin client has no use for them.
_OF_DATA_CLIENTS = _names(
    """group.id group.instance.id group.protocol auto.offset.reset enable.auto.commit
    enable.auto.offset.store auto.commit.interval.ms session.timeout.ms heartbeat.interval.ms
    max.poll.interval.ms isolation.level fetch.min.bytes fetch.max.bytes fetch.wait.max.ms
    max.partition.fetch.bytes partition.assignment.strategy client.rack acks request.required.acks
    enable.idempotence transactional.id compression.type compression.codec linger.ms batch.size
    batch.num.messages retries message.timeout.ms delivery.timeout.ms partitioner"""
)
# Settings that tune a client without changing whom it speaks to; Rehome sets its own timeouts.
_OF_TUNING = _names(
    """client.id socket.timeout.ms socket.keepalive.enable socket.connection.setup.timeout.ms
    request.timeout.ms reconnect.backoff.ms reconnect.backoff.max.ms metadata.max.age.ms
    topic.metadata.refresh.interval.ms broker.address.ttl log_level debug
    statistics.interval.ms api.version.request"""
)
_ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
}
_TRANSLATED = {key.name for key in KEYS}

# kafka-python writes its whole configuration, password included, to its log at DEBUG.
logging.getLogger("kafka").setLevel(max(logging.getLogger("kafka").level, logging.WARNING))


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster and as whom. Build it with :meth:`from_settings`.

    :param bootstrap_servers: (host, port) pairs, at least one.
    :param security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    :param sasl_mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; None without SASL.
    :param ca_location: file with the CAs to trust; None means those of the system.
    :param ca_pem: the same as text.
    :param certificate_location: this client's certificate, for mutual TLS.
    :param verify_host: whether the certificate must name the host that was dialled.
    :param controller_servers: (host, port) pairs of the controllers' own listener, where it can
        be reached: the only way to change the configuration of a dead broker.
    """

    bootstrap_servers: tuple[tuple[str, int], ...]
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_location: str | None = None
    ca_pem: str | None = field(default=None, repr=False)
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_certificate: bool = True
    verify_host: bool = True
    controller_servers: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Connection:
        """Read librdkafka settings; ``rehome.controller.servers`` is the one of our own.

        :raises InvalidRequestError: listing every setting that is missing, wrong, or that one
            of the two clients cannot honour.
        """
        problems: list[str] = []
        given = _known_settings(settings, problems)
        protocol = given.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in PROTOCOLS:
            problems.append(f"security.protocol is {protocol!r}; use {', '.join(PROTOCOLS)}.")
        mechanism = _sasl_mechanism(given, protocol, problems)
        if "ssl.key.location" in given and "ssl.certificate.location" not in given:
            problems.append("ssl.key.location needs ssl.certificate.location.")
        connection = cls(
            bootstrap_servers=_servers(given, "bootstrap.servers", problems),
            security_protocol=protocol,
            sasl_mechanism=mechanism,
            username=given.get("sasl.username") if mechanism else None,
            password=given.get("sasl.password") if mechanism else None,
            ca_location=given.get("ssl.ca.location"),
            ca_pem=given.get("ssl.ca.pem"),
            certificate_location=given.get("ssl.certificate.location"),
            key_location=given.get("ssl.key.location"),
            key_password=given.get("ssl.key.password"),
            verify_certificate=_flag(given, "enable.ssl.certificate.verification", problems),
            verify_host=_verifies_host(given, problems),
            controller_servers=_servers(given, CONTROLLER_SERVERS, problems),
        )
        if problems:
            raise InvalidRequestError(problems)
        return connection

    @property
    def uses_tls(self) -> bool:
        """Whether the listener speaks TLS."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def principal(self) -> str:
        """Who we are to the broker, for people: the SASL user, else the kind of client."""
        if self.username:
            return f"User:{self.username}"
        return "the client certificate's principal" if self.certificate_location else "anonymous"

    def of_controllers(self) -> Connection | None:
        """The same principal at the controllers' own listener; None where it is not named."""
        if not self.controller_servers:
            return None
        return replace(self, bootstrap_servers=self.controller_servers, controller_servers=())

    def librdkafka_settings(self) -> dict[str, Any]:
        """Settings for a confluent-kafka client, without timeouts."""
        settings: dict[str, Any] = {
            "bootstrap.servers": ",".join(_address(*pair) for pair in self.bootstrap_servers),
            "security.protocol": self.security_protocol,
        }
        if self.sasl_mechanism:
            settings["sasl.mechanism"] = self.sasl_mechanism
            settings["sasl.username"] = self.username
            settings["sasl.password"] = self.password
        if self.uses_tls:
            settings[HOST_CHECK] = "https" if self.verify_host else "none"
            settings["enable.ssl.certificate.verification"] = self.verify_certificate
            optional = {
                "ssl.ca.location": self.ca_location,
                "ssl.ca.pem": self.ca_pem,
                "ssl.certificate.location": self.certificate_location,
                "ssl.key.location": self.key_location,
                "ssl.key.password": self.key_password,
            }
            settings.update({key: value for key, value in optional.items() if value})
        return settings

    def kafka_python_settings(self) -> dict[str, Any]:
        """Settings for a kafka-python client, without timeouts."""
        return {
            "bootstrap_servers": [_address(*pair) for pair in self.bootstrap_servers],
            "security_protocol": self.security_protocol,
            "ssl_context": self.ssl_context() if self.uses_tls else None,
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_plain_username": self.username,
            "sasl_plain_password": self.password,
        }

    def ssl_context(self) -> ssl.SSLContext:
        """A TLS context that trusts and presents what these settings say.

        :raises InvalidRequestError: when a file is missing or is not what it should be.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify_host and self.verify_certificate
        if not self.verify_certificate:
            context.verify_mode = ssl.CERT_NONE
        self._load_files(context)
        return context

    def _load_files(self, context: ssl.SSLContext) -> None:
        try:
            if self.ca_location or self.ca_pem:
                context.load_verify_locations(cafile=self.ca_location, cadata=self.ca_pem)
            else:
                context.load_default_certs()
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequestError(
                [f"ssl.ca.location {self.ca_location or '(ssl.ca.pem)'} cannot be used: {error}."]
            ) from error
        if self.certificate_location:
            try:
                context.load_cert_chain(
                    self.certificate_location, self.key_location, self.key_password or ""
                )
            except (OSError, ssl.SSLError) as error:
                raise InvalidRequestError(
                    [f"ssl.certificate.location {self.certificate_location}: {error}."]
                ) from error


def _known_settings(settings: Mapping[str, Any], problems: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for key, value in settings.items():
        name = _ALIASES.get(key, key)
        if name in _OF_DATA_CLIENTS or name in _OF_TUNING or name == POLICY or value is None:
            continue
        if name not in _TRANSLATED:
            problems.append(f"The connection's setting {key} is not supported.")
            continue
        given[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return given


def _sasl_mechanism(given: Mapping[str, str], protocol: str, problems: list[str]) -> str | None:
    if not protocol.startswith("SASL_"):
        return None
    mechanism = given.get("sasl.mechanism", "").upper()
    if mechanism not in MECHANISMS:
        problems.append(
            f"sasl.mechanism is {mechanism or 'missing'}; {protocol} needs one of "
            f"{', '.join(MECHANISMS)}."
        )
    for key in ("sasl.username", "sasl.password"):
        if not given.get(key):
            problems.append(f"{protocol} needs {key}.")
    return mechanism


def _servers(
    given: Mapping[str, str], key: str, problems: list[str]
) -> tuple[tuple[str, int], ...]:
    servers = []
    for entry in filter(None, (part.strip() for part in given.get(key, "").split(","))):
        address = entry.rpartition("://")[2]
        host, colon, port = address.rpartition(":")
        if not colon or not host or address.endswith("]"):
            host, port = address, "9092"
        if not port.isdigit() or not 0 < int(port) < 65536:
            problems.append(f"{key}: {entry!r} is not host:port.")
            continue
        servers.append((host.strip("[]"), int(port)))
    if not servers and key == "bootstrap.servers":
        problems.append("bootstrap.servers is missing: name at least one broker as host:port.")
    return tuple(servers)


def _verifies_host(given: Mapping[str, str], problems: list[str]) -> bool:
    """Whatever is not understood is no leave to trust any host."""
    value = given.get(HOST_CHECK, "https").strip().lower()
    if value not in ("https", "none"):
        problems.append(f"{HOST_CHECK} is {given[HOST_CHECK]!r}; use https or none.")
    return value != "none"


def _flag(given: Mapping[str, str], key: str, problems: list[str]) -> bool:
    value = given.get(key, "true")
    if value not in ("true", "false"):
        problems.append(f"{key} is {value!r}; use true or false.")
    return value == "true"


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
