"""One set of librdkafka settings, as an Airflow connection holds it, for two clients.

confluent-kafka takes the settings nearly as they are; kafka-python needs them translated. What
cannot be translated faithfully is refused here, so that both clients always speak to the same
cluster as the same principal.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rehome.cluster.connection.keys import CONTROLLER_SERVERS, HOST_CHECK, KEYS, POLICY, PROTOCOLS
from rehome.cluster.connection.logins import Login, login_of
from rehome.cluster.connection.tls import Tls
from rehome.errors import InvalidRequestError

CORRECT_THE_CONNECTION = (
    "Correct the connection's extra, then clear the task, with what comes after it."
)

_KEYSTORE = (
    "Keystores are Java's; Rehome's clients read PEM. Convert it: `openssl pkcs12 -in client.p12 "
    "-out client.pem -nodes` (a JKS file first: `keytool -importkeystore -srckeystore client.jks "
    "-destkeystore client.p12 -deststoretype PKCS12`). Then name client.pem in "
    "ssl.certificate.location and in ssl.key.location"
)
_TRUSTSTORE = (
    "Truststores are Java's; Rehome's clients read PEM. Convert it: `keytool -list -rfc -keystore "
    "truststore.jks > ca.pem`. Then name ca.pem in ssl.ca.location"
)
_KINDS = "Rehome's clients read PEM only: leave it out"
_BY_MECHANISM = "It is Java's: name the login in sasl.mechanism instead"
_ONE_GRANT = "Rehome gets tokens by client credentials: sasl.oauthbearer.client.id and its secret"
_TICKET = (
    "Both clients use the ticket that the process has: name the keytab in KRB5_CLIENT_KTNAME, in "
    "the environment of every Airflow component, or keep a ticket there by kinit or k5start"
)

INSTEAD = {
    "ssl.keystore.location": _KEYSTORE,
    "ssl.keystore.password": _KEYSTORE,
    "ssl.truststore.location": _TRUSTSTORE,
    "ssl.truststore.password": _TRUSTSTORE,
    "ssl.keystore.type": _KINDS,
    "ssl.truststore.type": _KINDS,
    "ssl.keystore.certificate.chain": "Name ssl.certificate.pem",
    "ssl.keystore.key": "Name ssl.key.pem",
    "ssl.truststore.certificates": "Name ssl.ca.pem",
    "sasl.jaas.config": (
        "It is Java's: name sasl.username and sasl.password, or for OAUTHBEARER "
        "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"
    ),
    "sasl.login.class": _BY_MECHANISM,
    "sasl.login.callback.handler.class": _BY_MECHANISM,
    "sasl.client.callback.handler.class": _BY_MECHANISM,
    "sasl.oauthbearer.config": _ONE_GRANT,
    "sasl.oauthbearer.assertion.file": _ONE_GRANT,
    "sasl.oauthbearer.assertion.private.key.file": _ONE_GRANT,
    "sasl.oauthbearer.assertion.private.key.pem": _ONE_GRANT,
    "sasl.oauthbearer.metadata.authentication.type": _ONE_GRANT,
    "sasl.kerberos.keytab": _TICKET,
    "sasl.kerberos.principal": _TICKET,
    "sasl.kerberos.kinit.cmd": _TICKET,
}
"""A setting that is refused → what to do about it."""


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
    statistics.interval.ms api.version.request sasl.oauthbearer.sub.claim.name"""
)
_ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_TRANSLATED = {key.name for key in KEYS}

# kafka-python writes its whole configuration, password included, to its log at DEBUG.
logging.getLogger("kafka").setLevel(max(logging.getLogger("kafka").level, logging.WARNING))


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster and as whom. Build it with :meth:`from_settings`.

    :param bootstrap_servers: (host, port) pairs, at least one.
    :param security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    :param login: by SASL; None without it.
    :param tls: what is trusted and presented, where the protocol is with TLS.
    :param controller_servers: (host, port) pairs of the controllers' own listener, where it can
        be reached: the only way to change the configuration of a dead broker.
    """

    bootstrap_servers: tuple[tuple[str, int], ...]
    security_protocol: str = "PLAINTEXT"
    login: Login | None = None
    tls: Tls = field(default_factory=Tls)
    controller_servers: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Connection:
        """Read librdkafka settings; those that begin with ``rehome.`` are our own.

        :raises InvalidRequestError: listing every setting that is missing, wrong, or that one
            of the two clients cannot honour.
        """
        problems: list[str] = []
        given = _known_settings(settings, problems)
        protocol = given.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in PROTOCOLS:
            problems.append(f"security.protocol is {protocol!r}; use {', '.join(PROTOCOLS)}.")
        servers = _servers(given, "bootstrap.servers", problems)
        connection = cls(
            bootstrap_servers=servers,
            security_protocol=protocol,
            login=login_of(given, protocol, servers[0][0] if servers else "", problems),
            tls=_tls(given, problems),
            controller_servers=_servers(given, CONTROLLER_SERVERS, problems),
        )
        if problems:
            raise InvalidRequestError(problems, next_step=CORRECT_THE_CONNECTION)
        return connection

    @property
    def uses_tls(self) -> bool:
        """Whether the listener speaks TLS."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def how(self) -> str:
        """Protocol and mechanism, for people."""
        with_mechanism = f" with {self.login.mechanism}" if self.login else ""
        return self.security_protocol + with_mechanism

    @property
    def principal(self) -> str:
        """Who we are to the broker, for people: the SASL user, else the kind of client."""
        if self.login:
            return self.login.principal
        return "the client certificate's principal" if self.tls.has_certificate else "anonymous"

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
        if self.login:
            settings |= self.login.librdkafka()
        if self.uses_tls:
            settings |= self.tls.librdkafka()
        return settings

    def kafka_python_settings(self) -> dict[str, Any]:
        """Settings for a kafka-python client, without timeouts."""
        settings = {
            "bootstrap_servers": [_address(*pair) for pair in self.bootstrap_servers],
            "security_protocol": self.security_protocol,
            "ssl_context": self.tls.context() if self.uses_tls else None,
        }
        return settings | (self.login.kafka_python() if self.login else {})


def _tls(given: Mapping[str, str], problems: list[str]) -> Tls:
    tls = Tls(
        ca_location=given.get("ssl.ca.location"),
        ca_pem=given.get("ssl.ca.pem"),
        certificate_location=given.get("ssl.certificate.location"),
        certificate_pem=given.get("ssl.certificate.pem"),
        key_location=given.get("ssl.key.location"),
        key_pem=given.get("ssl.key.pem"),
        key_password=given.get("ssl.key.password"),
        verify_certificate=_flag(given, "enable.ssl.certificate.verification", problems),
        verify_host=_verifies_host(given, problems),
    )
    for text in ("ssl.ca", "ssl.certificate", "ssl.key", "https.ca"):
        if given.get(f"{text}.location") and given.get(f"{text}.pem"):
            problems.append(f"{text}.location and {text}.pem name the same: leave one out.")
    if (tls.key_location or tls.key_pem) and not tls.has_certificate:
        problems.append(
            "ssl.key.location and ssl.key.pem need ssl.certificate.location or ssl.certificate.pem."
        )
    return tls


def _known_settings(settings: Mapping[str, Any], problems: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for key, value in settings.items():
        name = _ALIASES.get(key, key)
        if name in _OF_DATA_CLIENTS or name in _OF_TUNING or name == POLICY or value is None:
            continue
        if name not in _TRANSLATED:
            instead = f": {INSTEAD[key]}" if key in INSTEAD else ""
            problems.append(f"The connection's setting {key} is not supported{instead}.")
            continue
        given[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return given


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
