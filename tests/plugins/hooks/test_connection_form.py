"""Rehome's own type of connection: its form, and what the fields mean."""

from __future__ import annotations

import json
import re

import pytest
from airflow.providers_manager import ProvidersManager

from local.kafka.cluster import LocalCluster
from rehome.cluster.connection.keys import KEYS
from rehome.errors import InvalidConnectionError
from rehome.hooks.cluster import KafkaClusterHook, RehomeKafkaHook
from rehome.hooks.connection_form import OWN_TYPE, SAME_AS, connection_type


def connect(monkeypatch: pytest.MonkeyPatch, name: str, **values: object) -> None:
    values = {"conn_type": OWN_TYPE, **values}
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(values))


def test_airflow_finds_the_type_its_form_and_its_hook_in_a_checkout() -> None:
    """By the package's metadata beside the plugin: Airflow has its folder on the path."""
    manager = ProvidersManager()
    hook = manager.hooks[OWN_TYPE]
    assert hook is not None
    assert hook.hook_class_name.endswith("RehomeKafkaHook")
    assert hook.connection_testable
    fields = manager.connection_form_widgets
    assert f"extra__{OWN_TYPE}__security.protocol" in fields
    assert manager.field_behaviours[OWN_TYPE]["relabeling"]["host"] == "Bootstrap servers"


def test_every_field_is_a_key_that_rehome_reads() -> None:
    fields = set(connection_type()["conn-fields"]) - {SAME_AS}
    assert fields <= {key.name for key in KEYS}


def test_the_usual_fields_are_servers_and_login(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.ca.pem": ""}
    usual = {"host": "a:1, SASL_SSL://b:2", "login": "ann", "password": "p@ss"}
    connect(monkeypatch, "own", **usual, extra=extra)
    settings = RehomeKafkaHook("own").connection.librdkafka_settings()
    assert settings["bootstrap.servers"] == "a:1,b:2"
    assert (settings["sasl.username"], settings["sasl.password"]) == ("ann", "p@ss")
    connect(monkeypatch, "some", host="SSL://a, b:8,[::1]", port=7)
    assert RehomeKafkaHook("some").connection.bootstrap_servers == (("a", 7), ("b", 8), ("::1", 7))


def test_a_login_by_oauth_is_the_clients_id_and_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://tokens.example/token"
    extra = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": url,
    }
    connect(monkeypatch, "own", host="a:1", login="rehome", password="secret", extra=extra)
    settings = RehomeKafkaHook("own").connection.librdkafka_settings()
    assert "sasl.username" not in settings
    extra["sasl.oauthbearer.client.id"] = "another"
    connect(monkeypatch, "own", host="a:1", login="rehome", password="secret", extra=extra)
    with pytest.raises(InvalidConnectionError, match=r"User and .*client\.id differ"):
        _ = RehomeKafkaHook("own").connection


def test_what_is_said_twice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "own", host="a:1", extra={"bootstrap.servers": "b:1"})
    with pytest.raises(InvalidConnectionError) as refused:
        _ = RehomeKafkaHook("own").connection
    assert str(refused.value) == (
        "Connection own cannot be used: Bootstrap servers and bootstrap.servers differ: leave one "
        "of them out. This step has changed nothing. Correct the connection in Airflow."
    )


def test_a_policy_stands_beside_a_connection_that_others_use(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, "shared", conn_type="kafka", extra=cluster.client_settings())
    own = {SAME_AS: "shared", "rehome.policy": {"approval": True}}
    connect(monkeypatch, "own", extra=own)
    hook = KafkaClusterHook("own")
    assert hook.policy.approval
    assert hook.connection == KafkaClusterHook("shared").connection
    works, said = hook.test_connection()
    assert works, said
    assert cluster.cluster_id in said
    assert "It has every right that a plan needs" in said


@pytest.mark.parametrize(
    ("own", "shared", "named"),
    [
        ({"bootstrap.servers": "mine:1"}, {}, "bootstrap.servers cannot stand beside"),
        ({"rehome.controller.servers": "mine:1"}, {}, "rehome.controller.servers cannot stand"),
        (
            {"rehome.policy": {"approval": True}},
            {"rehome.policy": {"approval": False}},
            "shared has a rehome.policy, too",
        ),
        ({}, {SAME_AS: "own"}, "leads back to itself"),
    ],
)
def test_nothing_else_stands_beside_it(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, object], shared: dict[str, object], named: str
) -> None:
    """The password of the other connection would go where this one leads."""
    there = {"bootstrap.servers": "a:1", **shared}
    connect(monkeypatch, "shared", extra=there if SAME_AS not in shared else shared)
    connect(monkeypatch, "own", extra={SAME_AS: "shared", **own})
    with pytest.raises(InvalidConnectionError, match=named):
        _ = KafkaClusterHook("own").connection


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"host": "127.0.0.1:1"}, "refused"),
        ({"host": "no-such-host.invalid:9092"}, "unknown host"),
        ({"host": "a:1", "extra": {"ssl.truststore.location": "t.jks"}}, "openssl|keytool"),
        ({"host": "a:1", "extra": {"sasl.jaas.config": "x"}}, "sasl.jaas.config"),
        ({"host": "a:b"}, "is not host:port"),
        ({}, "bootstrap.servers is missing"),
        ({"host": "a:1", "extra": {"rehome.policy": {"nonsense": 1}}}, "nonsense"),
    ],
)
def test_a_test_names_what_is_wrong_and_speaks_of_the_connection(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, object], named: str
) -> None:
    connect(monkeypatch, "own", **values)
    works, said = RehomeKafkaHook("own").test_connection()
    assert not works
    assert re.search(named, said), said
    assert "parameters" not in said
    assert "connection" in said.lower() or "cluster" in said
