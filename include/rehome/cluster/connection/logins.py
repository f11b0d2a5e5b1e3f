"""How a connection logs in by SASL: what each mechanism needs, and what both clients get of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from rehome.cluster.connection.keys import MECHANISMS, MSK_REGION, MSK_ROLE
from rehome.cluster.connection.tokens import MSK_IAM, ClientCredentials, MskIam, Tokens, region_of
from rehome.cluster.interface.errors import ClusterUnreachableError

_KERBEROS = "GSSAPI"
_OAUTH = "OAUTHBEARER"
_PREFIX = "sasl.oauthbearer."
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """PLAIN and SCRAM."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    tokens: None = None

    @property
    def sent_as(self) -> str:
        """The mechanism's name on the wire."""
        return self.mechanism

    @property
    def principal(self) -> str:
        """Who we are to the broker, for people."""
        return f"User:{self.username}"

    def librdkafka(self) -> dict[str, Any]:
        """Settings of a confluent-kafka client."""
        return {
            "sasl.mechanism": self.sent_as,
            "sasl.username": self.username,
            "sasl.password": self.password,
        }

    def kafka_python(self) -> dict[str, Any]:
        """Settings of a kafka-python client."""
        return {
            "sasl_mechanism": self.sent_as,
            "sasl_plain_username": self.username,
            "sasl_plain_password": self.password,
        }


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """OAUTHBEARER, and what Amazon MSK makes of it. Both clients show the same token."""

    mechanism: str
    tokens: Tokens

    @property
    def sent_as(self) -> str:
        """The mechanism's name on the wire."""
        return _OAUTH

    @property
    def principal(self) -> str:
        """Who we are to the broker, for people."""
        return self.tokens.principal

    def librdkafka(self) -> dict[str, Any]:
        """Settings of a confluent-kafka client: it asks for a token when it needs one."""

        def token(_: str) -> tuple[str, float, str, dict[str, str]]:
            current = self.tokens.current()
            return current.value, current.ends_at, self.principal, self.tokens.extensions

        return {"sasl.mechanism": self.sent_as, "oauth_cb": token}

    def kafka_python(self) -> dict[str, Any]:
        """Settings of a kafka-python client: it asks for a token at each connection."""
        return {
            "sasl_mechanism": self.sent_as,
            "sasl_oauth_token_provider": _token_provider(self.tokens),
        }


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """GSSAPI, with the ticket that this process has.

    :param service: name of the brokers' service principal.
    """

    service: str
    mechanism: str = _KERBEROS
    tokens: None = None

    @property
    def sent_as(self) -> str:
        """The mechanism's name on the wire."""
        return self.mechanism

    @property
    def principal(self) -> str:
        """Who we are to the broker, for people."""
        return "the Kerberos ticket's principal"

    def librdkafka(self) -> dict[str, Any]:
        """Settings of a confluent-kafka client, which is not to run kinit."""
        return {
            "sasl.mechanism": self.sent_as,
            "sasl.kerberos.service.name": self.service,
            "sasl.kerberos.kinit.cmd": "true",
            "sasl.kerberos.min.time.before.relogin": 0,
        }

    def kafka_python(self) -> dict[str, Any]:
        """Settings of a kafka-python client."""
        return {"sasl_mechanism": self.sent_as, "sasl_kerberos_service_name": self.service}


Login = PasswordLogin | TokenLogin | KerberosLogin


def login_of(
    given: Mapping[str, str], protocol: str, host: str, problems: list[str]
) -> Login | None:
    """The login of a connection, None without SASL or where there are problems.

    :param host: of a bootstrap server.
    :param problems: what is wrong is added here.
    """
    if not protocol.startswith("SASL_"):
        return None
    mechanism = given.get("sasl.mechanism", "").upper()
    if mechanism not in MECHANISMS:
        problems.append(
            f"sasl.mechanism is {mechanism or 'missing'}; {protocol} needs one of "
            f"{', '.join(MECHANISMS)}."
        )
        return None
    if mechanism == _OAUTH:
        return _by_client_credentials(given, problems)
    if mechanism == MSK_IAM:
        return _by_msk_iam(given, protocol, host, problems)
    if mechanism == _KERBEROS:
        return _by_kerberos(given, problems)
    _require(given, ("sasl.username", "sasl.password"), mechanism, problems)
    return PasswordLogin(mechanism, given.get("sasl.username", ""), given.get("sasl.password", ""))


def _by_client_credentials(given: Mapping[str, str], problems: list[str]) -> Login:
    method = given.get(f"{_PREFIX}method", "oidc").lower()
    grant = given.get(f"{_PREFIX}grant.type", "client_credentials").lower()
    if method != "oidc" or grant != "client_credentials":
        problems.append(
            f"{_PREFIX}method is {method} and {_PREFIX}grant.type {grant}; use oidc and "
            "client_credentials."
        )
    url, name, secret = (
        f"{_PREFIX}{key}" for key in ("token.endpoint.url", "client.id", "client.secret")
    )
    _require(given, (url, name, secret), _OAUTH, problems)
    credentials = ClientCredentials(
        url=given.get(url, ""),
        client_id=given.get(name, ""),
        client_secret=given.get(secret, ""),
        scope=given.get(f"{_PREFIX}scope", ""),
        ca_location=given.get("https.ca.location"),
        ca_pem=given.get("https.ca.pem"),
    )
    address = urlsplit(credentials.url)
    if credentials.url and address.scheme not in ("https", "http"):
        problems.append(f"{url} is {credentials.url!r}; it begins with https://.")
    elif address.scheme == "http" and address.hostname not in _THIS_MACHINE:
        problems.append(
            f"{url} is {credentials.url!r}: the client's secret could be read on the way. Write https://."
        )
    extensions = _extensions(given.get(f"{_PREFIX}extensions", ""), problems)
    return TokenLogin(
        _OAUTH, Tokens(credentials.fetch, f"the OAuth client {credentials.client_id}", extensions)
    )


def _by_msk_iam(given: Mapping[str, str], protocol: str, host: str, problems: list[str]) -> Login:
    if protocol != "SASL_SSL":
        problems.append(f"security.protocol is {protocol}; {MSK_IAM} needs SASL_SSL.")
    region = given.get(MSK_REGION) or region_of(host)
    if not region:
        problems.append(
            f"{MSK_IAM} needs {MSK_REGION}, for bootstrap.servers do not show the region."
        )
    role = given.get(MSK_ROLE, "")
    principal = f"the role {role}" if role else "the AWS credentials of this machine"
    return TokenLogin(MSK_IAM, Tokens(MskIam(region or "", role).fetch, principal))


def _by_kerberos(given: Mapping[str, str], problems: list[str]) -> Login:
    if find_spec("gssapi") is None:
        problems.append(
            "GSSAPI needs the package gssapi: install rehome[kerberos] on every machine of Airflow."
        )
    if not librdkafka_has_kerberos():
        problems.append(
            "GSSAPI is not in the librdkafka of this confluent-kafka, as in none of its wheels: "
            "build librdkafka with libsasl2, and confluent-kafka from its source "
            "(pip install --no-binary confluent-kafka confluent-kafka)."
        )
    return KerberosLogin(given.get("sasl.kerberos.service.name", "kafka"))


@cache
def librdkafka_has_kerberos() -> bool:
    """Whether this machine's librdkafka was built with GSSAPI; only a new client says so."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "log_level": 0,
    }
    try:
        AdminClient(settings | KerberosLogin("kafka").librdkafka())
    except KafkaException:
        return False
    return True


def _require(
    given: Mapping[str, str], keys: tuple[str, ...], mechanism: str, problems: list[str]
) -> None:
    problems += [f"{mechanism} needs {key}." for key in keys if not given.get(key)]


def _extensions(text: str, problems: list[str]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not all(name.strip() and value for name, _, value in pairs):
        problems.append(f"{_PREFIX}extensions is no list of key=value, separated by commas.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _token_provider(tokens: Tokens) -> Any:
    from kafka.errors import SaslAuthenticationFailedError
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):
        """The login's token, as kafka-python asks for it."""

        def token(self) -> str:
            """The current one."""
            try:
                return tokens.current().value
            except ClusterUnreachableError as error:
                raise SaslAuthenticationFailedError(str(error)) from error

        def extensions(self) -> dict[str, str]:
            """SASL extensions."""
            return tokens.extensions

    return Provider()
