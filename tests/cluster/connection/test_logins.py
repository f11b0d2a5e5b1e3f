"""What each mechanism asks for, and what is said where that is missing."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from rehome.cluster.connection import logins
from rehome.cluster.connection.settings import Connection
from rehome.errors import InvalidRequestError

SASL = {"bootstrap.servers": "b1:9093", "security.protocol": "SASL_SSL"}
TOKENS = SASL | {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
    "sasl.oauthbearer.client.id": "robot",
    "sasl.oauthbearer.client.secret": "s3cret-word",
}


def problems_of(settings: dict[str, Any]) -> str:
    with pytest.raises(InvalidRequestError) as raised:
        Connection.from_settings(settings)
    return " ".join(raised.value.problems)


@pytest.mark.parametrize(
    ("mechanism", "needed"),
    [
        ("PLAIN", ["sasl.username", "sasl.password"]),
        ("SCRAM-SHA-512", ["sasl.username", "sasl.password"]),
        (
            "OAUTHBEARER",
            [
                "sasl.oauthbearer.token.endpoint.url",
                "sasl.oauthbearer.client.id",
                "sasl.oauthbearer.client.secret",
            ],
        ),
    ],
)
def test_all_that_a_mechanism_needs_is_asked_for(mechanism: str, needed: list[str]) -> None:
    text = problems_of(SASL | {"sasl.mechanism": mechanism})
    assert [key for key in needed if f"{mechanism} needs {key}." not in text] == []


def test_without_a_mechanism_sasl_is_refused() -> None:
    assert "sasl.mechanism is missing; SASL_SSL needs one of PLAIN" in problems_of(SASL)


def test_a_secret_shows_in_no_representation() -> None:
    connection = Connection.from_settings(TOKENS)
    assert connection.principal == "the OAuth client robot"
    assert "s3cret-word" not in repr(connection) + str(connection.librdkafka_settings())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sasl.oauthbearer.method": "default"}, "use oidc and client_credentials"),
        ({"sasl.oauthbearer.grant.type": "jwt-bearer"}, "use oidc and client_credentials"),
        ({"sasl.oauthbearer.token.endpoint.url": "login.example"}, "it begins with https://"),
        (
            {"sasl.oauthbearer.token.endpoint.url": "http://login.example/token"},
            "the client's secret could be read on the way",
        ),
        ({"sasl.oauthbearer.extensions": "a=1,b"}, "no list of key=value"),
        ({"sasl.oauthbearer.assertion.file": "/x"}, "Rehome gets tokens by client credentials"),
        ({"https.ca.location": "/a", "https.ca.pem": "b"}, "leave one out"),
    ],
)
def test_what_is_wrong_with_a_token_login_is_said(wrong: dict[str, str], said: str) -> None:
    assert said in problems_of(TOKENS | wrong)


def test_extensions_reach_both_clients() -> None:
    given = {"sasl.oauthbearer.extensions": "logicalCluster=lkc-1, identityPoolId=pool=2"}
    connection = Connection.from_settings(TOKENS | given)
    expected = {"logicalCluster": "lkc-1", "identityPoolId": "pool=2"}
    assert connection.login is not None
    assert connection.login.tokens is not None
    assert connection.login.tokens.extensions == expected
    provider = connection.kafka_python_settings()["sasl_oauth_token_provider"]
    assert provider.extensions() == expected


def test_the_newer_names_of_id_and_secret_are_the_same() -> None:
    given = dict(TOKENS)
    for key in ("id", "secret"):
        value = given.pop(f"sasl.oauthbearer.client.{key}")
        given[f"sasl.oauthbearer.client.credentials.client.{key}"] = value
    assert Connection.from_settings(given).principal == "the OAuth client robot"


def test_kerberos_says_what_this_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    kerberos = SASL | {"sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "/x.keytab"}
    monkeypatch.setattr(logins, "find_spec", lambda name: None)
    monkeypatch.setattr(logins, "librdkafka_has_kerberos", lambda: False)
    text = problems_of(kerberos)
    for part in ("rehome[kerberos]", "librdkafka with libsasl2", "KRB5_CLIENT_KTNAME"):
        assert part in text


def test_kerberos_goes_to_both_clients_where_they_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "find_spec", lambda name: importlib.util.find_spec("json"))
    monkeypatch.setattr(logins, "librdkafka_has_kerberos", lambda: True)
    named = {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "brokers"}
    connection = Connection.from_settings(SASL | named)
    assert connection.librdkafka_settings()["sasl.kerberos.service.name"] == "brokers"
    theirs = connection.kafka_python_settings()
    assert theirs["sasl_mechanism"] == "GSSAPI"
    assert theirs["sasl_kerberos_service_name"] == "brokers"


def test_whether_librdkafka_has_kerberos_is_asked_of_itself() -> None:
    assert logins.librdkafka_has_kerberos() is False, "no wheel of confluent-kafka has it"
