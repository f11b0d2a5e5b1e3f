"""The secured local cluster lets in whom it should, to do what they may, and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from local.kafka.certificates import CertificateAuthority
from local.kafka.cluster import LocalCluster, Security
from local.process.waiting import wait_until
from tests.conftest import Topics

TOPIC_TOOL = "org.apache.kafka.tools.TopicCommand"


def _wait_until_refused(settings: Mapping[str, str], code: int) -> None:
    """Until a client is refused on its way in for this reason; a slow start may come first."""
    errors: list[KafkaError] = []
    admin = AdminClient({**settings, "error_cb": errors.append, "log_level": 0})

    def refused() -> bool:
        admin.poll(0.1)
        return any(error.code() == code for error in errors)

    wait_until(refused, f"the client to be refused with {code}", 240)


def _visible_topics(cluster: LocalCluster, user: str) -> set[str]:
    return set(AdminClient(cluster.client_settings(user)).list_topics(timeout=60).topics)


def _broker_config_error(cluster: LocalCluster, user: str) -> KafkaError | None:
    """Why ``user`` may not read a broker's configuration; None when it may."""
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    admin = AdminClient(cluster.client_settings(user))
    error = admin.describe_configs([resource], request_timeout=60)[resource].exception()
    if error is None:
        return None
    assert isinstance(error, KafkaException)
    return error.args[0]


def test_every_user_gets_in_with_its_password(secured_cluster: LocalCluster) -> None:
    assert secured_cluster.security is not None
    for user in secured_cluster.security.users:
        admin = AdminClient(secured_cluster.client_settings(user))
        assert set(admin.list_topics(timeout=60).brokers) == set(secured_cluster.broker_ids)


@pytest.mark.parametrize(
    "wrong", [{"sasl.password": "guessed"}, {"sasl.username": "stranger"}], ids=str
)
def test_a_wrong_password_or_user_is_refused(
    secured_cluster: LocalCluster, wrong: dict[str, str]
) -> None:
    settings = secured_cluster.client_settings("planner") | wrong
    _wait_until_refused(settings, KafkaError._AUTHENTICATION)


def test_a_client_that_trusts_another_ca_does_not_connect(
    secured_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = CertificateAuthority().write(tmp_path_factory.mktemp("other") / "ca.pem")
    settings = secured_cluster.client_settings() | {"ssl.ca.location": str(other)}
    _wait_until_refused(settings, KafkaError._SSL)


def test_a_right_holds_from_allow_to_revoke(secured_cluster: LocalCluster) -> None:
    def refused() -> bool:
        error = _broker_config_error(secured_cluster, "nobody")
        assert error is None or error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
        return error is not None

    assert refused()
    secured_cluster.allow("nobody", "DESCRIBE_CONFIGS", "CLUSTER")
    try:
        assert not refused()
    finally:
        secured_cluster.revoke("nobody", "DESCRIBE_CONFIGS", "CLUSTER")
    assert refused()
    with pytest.raises(LookupError, match="nobody had no right"):
        secured_cluster.revoke("nobody", "DESCRIBE_CONFIGS", "CLUSTER")


def test_a_prefixed_right_shows_only_the_topics_it_names(
    secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    seen = secured_topics.create([[1, 2]], name="seen")
    secured_topics.create([[3, 4]], name="hidden")
    assert _visible_topics(secured_cluster, "nobody") == set()
    secured_cluster.allow("nobody", "describe", "topic", "seen-", pattern="prefixed")
    try:
        assert _visible_topics(secured_cluster, "nobody") == {seen}
    finally:
        secured_cluster.revoke("nobody", "describe", "topic", "seen-", pattern="prefixed")


def test_kafkas_own_tools_run_as_a_user(
    secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    topic = secured_topics.create([[1]])
    as_admin = secured_cluster.run_tool(TOPIC_TOOL, "--list")
    as_nobody = secured_cluster.run_tool(TOPIC_TOOL, "--list", user="nobody")
    assert topic in as_admin.stdout.splitlines(), as_admin.stderr
    assert (as_nobody.returncode, as_nobody.stdout.split()) == (0, [])


@pytest.mark.parametrize(
    "security",
    [Security("SSL"), Security("SASL_PLAINTEXT", "PLAIN")],
    ids=lambda security: security.protocol,
)
def test_other_ways_of_naming_oneself_are_distinguished_too(
    private_cluster: Callable[..., LocalCluster], security: Security
) -> None:
    cluster = private_cluster(brokers=1, security=security)
    assert _broker_config_error(cluster, "admin") is None
    refused = _broker_config_error(cluster, "nobody")
    assert refused is not None
    assert refused.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    cluster.allow("nobody", "describe_configs", "cluster")
    assert _broker_config_error(cluster, "nobody") is None
    assert cluster.run_tool(TOPIC_TOOL, "--list").returncode == 0


def test_no_password_is_in_what_a_cluster_prints_of_itself() -> None:
    security = Security(users={"admin": "hunter2"})
    assert "hunter2" not in repr(security)


@pytest.mark.parametrize(
    "users", [{}, {"planner": "x"}, {"admin": 'a"b'}, {"admin": "x", "broker": "x"}], ids=str
)
def test_users_that_cannot_work_are_refused(users: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="user"):
        Security(users=users)
