"""Rehome's own type of connection: the form that Airflow shows, and what its fields mean.

Airflow reads the form without importing a hook. A field below the standard ones is a key of the
connection's extra, under the name that librdkafka has for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

from rehome.cluster.connection.keys import (
    CONTROLLER_SERVERS,
    HOST_CHECK,
    KEYS,
    MECHANISMS,
    POLICY,
    PROTOCOLS,
)
from rehome.errors import InvalidConnectionError

OWN_TYPE = "rehome_kafka"
PROVIDERS_TYPE = "kafka"
"""That of Airflow's Kafka provider: its extra is taken as it is."""
SAME_AS = "rehome.same_as"
"""Another connection, whose settings hold here. Nothing but a policy stands beside it: its password
would go to other servers else.
"""
SERVERS = "bootstrap.servers"
_LABELS: Mapping[str, str] = {
    "security.protocol": "Security protocol",
    "sasl.mechanism": "SASL mechanism",
    "sasl.oauthbearer.token.endpoint.url": "OAuth token endpoint",
    "sasl.oauthbearer.scope": "OAuth scope",
    "ssl.ca.location": "CA, path of a PEM file",
    "ssl.ca.pem": "CA, as PEM text",
    "ssl.certificate.location": "Client certificate, path of a PEM file",
    "ssl.certificate.pem": "Client certificate, as PEM text",
    "ssl.key.location": "Its private key, path of a PEM file",
    "ssl.key.password": "Password of the private key",
    HOST_CHECK: "Host names of certificates",
    CONTROLLER_SERVERS: "Controllers' listener",
}
"""The keys that have a field, in its order; the others go into the extra."""
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "security.protocol": PROTOCOLS,
    "sasl.mechanism": MECHANISMS,
    HOST_CHECK: ("https", "none"),
}
_LINES = frozenset({"ssl.ca.pem", "ssl.certificate.pem"})
_SECRET = frozenset({"ssl.key.password"})
_OF_LOGIN: Mapping[str, tuple[str, str]] = {
    "OAUTHBEARER": ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"),
}
"""SASL mechanism → the keys that Login and Password stand for; of others, user and password."""
_USER = ("sasl.username", "sasl.password")


class _Stored(Protocol):
    """What is read of Airflow's connection."""

    conn_type: str | None
    host: str | None
    port: int | None
    login: str | None
    password: str | None

    @property
    def extra_dejson(self) -> dict[str, Any]: ...


def connection_type() -> dict[str, Any]:
    """As Airflow's schema of providers describes one."""
    return {
        "connection-type": OWN_TYPE,
        "hook-class-name": "rehome.hooks.cluster.RehomeKafkaHook",
        "hook-name": "Kafka cluster (Rehome)",
        "ui-field-behaviour": {
            "hidden-fields": ["schema"],
            "relabeling": {
                "host": "Bootstrap servers",
                "port": "Port, where one names none",
                "login": "User, or client id",
                "password": "Password, or client secret",
                "extra": "Other settings",
            },
            "placeholders": {
                "host": "broker-1,broker-2",
                "port": "9092",
                "extra": '{"ssl.endpoint.identification.algorithm": "https"}',
            },
        },
        "conn-fields": {**_key_fields(), **_own_fields()},
    }


def _key_fields() -> dict[str, Any]:
    meanings = {key.name: key.meaning for key in KEYS}
    return {
        name: {"label": label, "description": _plain(meanings[name]), "schema": _schema(name)}
        for name, label in _LABELS.items()
    }


def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["string", "null"]}
    if name in _CHOICES:
        schema["enum"] = list(_CHOICES[name])
    if name in _LINES:
        schema["format"] = "multiline"
    if name in _SECRET:
        schema["format"] = "password"
    return schema


def _own_fields() -> dict[str, Any]:
    return {
        SAME_AS: {
            "label": "Same as connection",
            "description": "Id of another Kafka connection, whose servers, login and certificates "
            "hold here. Beside it stands nothing but a policy: so that stays out of a connection "
            "that other operators use.",
            "schema": {"type": ["string", "null"]},
        },
    }


def _plain(text: str) -> str:
    """Without Markdown: the form shows text as it is."""
    return text.partition("[")[0].replace("`", "").strip()


def settings_of(name: str, stored: _Stored) -> dict[str, Any]:
    """A connection's settings under librdkafka's names, with Rehome's own keys among them.

    :param name: of the connection, for people.
    :raises InvalidConnectionError: it is of another type, or says something twice.
    """
    extra = dict(stored.extra_dejson)
    if stored.conn_type == PROVIDERS_TYPE:
        return extra
    if stored.conn_type != OWN_TYPE:
        problem = f"It is neither of type {OWN_TYPE} nor of type {PROVIDERS_TYPE}."
        raise InvalidConnectionError(name, [problem])
    settings = {key: value for key, value in extra.items() if value not in (None, "", {})}
    problems: list[str] = []
    for key, value, field in _standard(stored, str(settings.get("sasl.mechanism", ""))):
        if settings.get(key, value) != value:
            problems.append(f"{field} and {key} differ: leave one of them out.")
        settings[key] = value
    if problems:
        raise InvalidConnectionError(name, problems)
    return settings


def _standard(stored: _Stored, mechanism: str) -> list[tuple[str, str, str]]:
    """(key, value, what the form calls it) of each standard field that is filled in."""
    user, password = _OF_LOGIN.get(mechanism.upper(), _USER)
    given = (
        (SERVERS, _servers(stored.host or "", stored.port), "Bootstrap servers"),
        (user, stored.login or "", "User"),
        (password, stored.password or "", "Password"),
    )
    return [each for each in given if each[1]]


def _servers(hosts: str, port: int | None) -> str:
    """Servers parted by commas, those that name no port with this one."""
    each = [host.strip() for host in hosts.split(",") if host.strip()]
    return ",".join(host if _has_port(host) or not port else f"{host}:{port}" for host in each)


def _has_port(host: str) -> bool:
    address = host.rpartition("://")[2]
    return ":" in address.rpartition("]")[2] if "]" in address else ":" in address


def join_settings(
    name: str, own: Mapping[str, Any], base: str, others: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of a connection that is the same as another one.

    :raises InvalidConnectionError: it says more than a policy, or both have one.
    """
    beside = sorted(own.keys() - {SAME_AS, POLICY})
    problems = [f"{key} cannot stand beside {SAME_AS}: set it in {base}." for key in beside]
    if POLICY in own and POLICY in others:
        problems.append(f"{base} has a {POLICY}, too: leave one of them out.")
    if problems:
        raise InvalidConnectionError(name, problems)
    return {**others, **own}


def unread_variable(name: str) -> str:
    """What is wrong with the variable of the environment that has a connection which Airflow does
    not find: it takes what it cannot read there for none. "" = there is none.
    """
    variable = f"AIRFLOW_CONN_{name.upper()}"
    if not os.environ.get(variable):
        return ""
    return f"{variable} in the environment is no connection, neither as a URI nor as JSON."


def without_own(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a client may be given: without the keys that no client knows."""
    return {key: value for key, value in settings.items() if key not in (POLICY, SAME_AS)}
