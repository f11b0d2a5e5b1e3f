"""Every login, on a real broker that checks it: both clients are let in, as the same principal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.kafka.certificates import CertificateAuthority
from local.process.waiting import wait_until
from rehome.cluster.connection.check import check_connection
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable
from tests.cluster.connection.logins import PASSWORD, Logins, login_cluster
from tests.cluster.ending import BEYOND_PATIENCE_S
from tests.conftest import Topics
from tests.session.needs import Need, needs

SECRET = "client-secret"


@pytest.fixture(scope="module")
@needs(Need.BROKERS)
def logins() -> Iterator[Logins]:
    """One broker for all of them. Each user may see and grow one topic, ``of-<user>``."""
    with login_cluster(brokers=1) as found, Topics(found.cluster) as topics:
        for mechanism, user in (("SCRAM-SHA-256", "scram256"), ("SCRAM-SHA-512", "scram512")):
            found.set_scram_password(mechanism, user, PASSWORD)
        found.tokens.clients["robot"] = SECRET
        for user in ("plain", "scram256", "scram512", "robot", "alice", "bob"):
            topics.create_as(f"of-{user}", [[1]])
            found.cluster.allow(user, "describe", "topic", f"of-{user}")
            found.cluster.allow(user, "alter", "topic", f"of-{user}")
        yield found


@pytest.fixture
def token_life(logins: Logins) -> Iterator[None]:
    """The token server is as it was before the test afterwards."""
    yield
    logins.tokens.lasts_s, logins.tokens.open = 300, True
    logins.tokens.clients["robot"] = SECRET


def certificate_of(logins: Logins, user: str) -> Path:
    return logins.authority.issue(logins.folder / f"{user}.pem", user)


LOGINS: dict[str, tuple[str, Callable[[Logins], dict[str, str]]]] = {
    "plain": ("plain", lambda at: at.by_password("PLAIN", "plain", PASSWORD)),
    "scram-256": ("scram256", lambda at: at.by_password("SCRAM-SHA-256", "scram256", PASSWORD)),
    "scram-512": ("scram512", lambda at: at.by_password("SCRAM-SHA-512", "scram512", PASSWORD)),
    "certificate": ("alice", lambda at: at.by_certificate(certificate_of(at, "alice"))),
    "inline": ("bob", lambda at: at.by_certificate_text(certificate_of(at, "bob"))),
    "token": ("robot", lambda at: at.by_token("robot", SECRET)),
}


def seen_by(gateway: ClusterGateway) -> set[str]:
    """Topics that both clients may see and change: kafka-python reads, librdkafka writes."""
    topics = set(gateway.describe_topics())
    answers = gateway.create_partitions(dict.fromkeys(topics, 2), validate_only=True)
    assert not any(answers.values()), answers
    return topics


@pytest.mark.parametrize("login", LOGINS)
def test_both_clients_are_let_in_as_the_same_principal(login: str, logins: Logins) -> None:
    user, settings = LOGINS[login]
    connection = Connection.from_settings(settings(logins))
    assert logins.cluster.cluster_id in check_connection(connection, BEYOND_PATIENCE_S)
    with ClusterGateway(connection) as gateway:
        assert seen_by(gateway) == {f"of-{user}"}


def test_tokens_are_renewed_while_a_gateway_is_open(logins: Logins, token_life: None) -> None:
    """The broker ends a connection 10 s after its login, unless that is done anew."""
    logins.tokens.lasts_s = 10
    asked = len(logins.tokens.asked)
    with ClusterGateway(Connection.from_settings(logins.by_token("robot", SECRET))) as gateway:

        def renewed_and_let_in() -> bool:
            assert seen_by(gateway) == {"of-robot"}
            return len(logins.tokens.asked) >= asked + 3

        wait_until(renewed_and_let_in, "three tokens", 120, 0.5)
    assert logins.tokens.asked[-1]["scope"] == ["kafka"]


def cause_of(settings: dict[str, str]) -> tuple[Unreachable, str]:
    with pytest.raises(ClusterUnreachableError) as raised:
        check_connection(Connection.from_settings(settings), BEYOND_PATIENCE_S)
    text = str(raised.value)
    assert SECRET not in text
    return raised.value.cause, text


def test_why_there_is_no_token_or_why_it_is_refused_is_named(
    logins: Logins, token_life: None
) -> None:
    cause, text = cause_of(logins.by_token("stranger", SECRET))
    assert cause is Unreachable.NO_CREDENTIALS
    assert "401: invalid_client, stranger is unknown" in text
    logins.tokens.open = False
    cause, text = cause_of(logins.by_token("robot", SECRET))
    assert cause is Unreachable.NO_CREDENTIALS
    assert "503: temporarily_unavailable" in text
    logins.tokens.open = True
    logins.tokens.audience, audience = "elsewhere", logins.tokens.audience
    try:
        cause, text = cause_of(logins.by_token("robot", SECRET))
    finally:
        logins.tokens.audience = audience
    assert cause is Unreachable.LOGIN_REFUSED
    assert "the OAuth client robot was not authenticated" in text
    nowhere = {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}
    cause, text = cause_of(logins.by_token("robot", SECRET) | nowhere)
    assert cause is Unreachable.NO_CREDENTIALS
    assert "cannot be reached" in text


def test_an_open_gateway_goes_on_while_the_token_server_is_away(
    logins: Logins, token_life: None
) -> None:
    with ClusterGateway(Connection.from_settings(logins.by_token("robot", SECRET))) as gateway:
        assert seen_by(gateway) == {"of-robot"}
        logins.tokens.open = False
        gateway.close()  # connects anew
        assert seen_by(gateway) == {"of-robot"}


def test_a_password_that_changes_is_picked_up_by_the_next_gateway(logins: Logins) -> None:
    old = logins.by_password("SCRAM-SHA-256", "scram256", PASSWORD)
    new = old | {"sasl.password": "changed-secret"}
    with ClusterGateway(Connection.from_settings(old)) as gateway:
        assert seen_by(gateway) == {"of-scram256"}
        logins.set_scram_password("SCRAM-SHA-256", "scram256", "changed-secret")
        try:
            assert seen_by(gateway) == {"of-scram256"}, "what is connected stays so"
            with ClusterGateway(Connection.from_settings(new)) as following:
                assert seen_by(following) == {"of-scram256"}
            assert cause_of(old)[0] is Unreachable.WRONG_PASSWORD
        finally:
            logins.set_scram_password("SCRAM-SHA-256", "scram256", PASSWORD)


def test_a_certificate_that_is_replaced_is_picked_up_by_the_next_gateway(logins: Logins) -> None:
    file = certificate_of(logins, "alice")
    for user in ("alice", "bob"):
        logins.authority.issue(file, user)
        with ClusterGateway(Connection.from_settings(logins.by_certificate(file))) as gateway:
            assert seen_by(gateway) == {f"of-{user}"}


def test_without_a_certificate_or_with_a_strangers_nobody_is_let_in(
    logins: Logins, tmp_path: Path
) -> None:
    strange = CertificateAuthority().issue(tmp_path / "stranger.pem", "alice")
    cause, _ = cause_of(logins.by_certificate(strange))
    assert cause in (Unreachable.TLS, Unreachable.WRONG_PROTOCOL)
