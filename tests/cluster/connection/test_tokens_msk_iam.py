"""Amazon's tokens, checked by their format: no MSK runs here."""

from __future__ import annotations

import base64
import sys
from urllib.parse import parse_qs, urlsplit

import pytest

from rehome.cluster.connection.settings import Connection
from rehome.cluster.connection.tokens import MskIam, region_of
from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable
from rehome.domain.clock import utc_now
from rehome.errors import InvalidRequestError

MSK = {
    "bootstrap.servers": "b-1.demo.abc.c2.kafka.eu-central-1.amazonaws.com:9098",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
}


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTS")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-the-session")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("b-1.demo.abc.c2.kafka.eu-central-1.amazonaws.com", "eu-central-1"),
        ("boot-xyz.c1.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.demo.abc.c2.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.example.com", None),
    ],
)
def test_the_region_is_in_amazons_names_of_brokers(host: str, region: str | None) -> None:
    assert region_of(host) == region


def test_a_token_is_a_signed_request_to_connect(credentials: None) -> None:
    connection = Connection.from_settings(MSK)
    token, ends_at, _, extensions = connection.librdkafka_settings()["oauth_cb"]("")
    url = urlsplit(base64.urlsafe_b64decode(token + "==").decode())
    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert url.scheme == "https"
    assert url.hostname == "kafka.eu-central-1.amazonaws.com"
    assert asked["Action"] == "kafka-cluster:Connect"
    assert asked["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
    assert asked["X-Amz-Credential"].startswith("AKIATESTS/")
    assert asked["X-Amz-Credential"].endswith("/eu-central-1/kafka-cluster/aws4_request")
    assert asked["X-Amz-Security-Token"] == "of-the-session"
    assert len(bytes.fromhex(asked["X-Amz-Signature"])) == 32
    assert 0 < ends_at - utc_now().timestamp() <= 900
    assert not extensions


def test_both_clients_send_the_same_token_as_oauthbearer(credentials: None) -> None:
    connection = Connection.from_settings(MSK)
    ours, theirs = connection.librdkafka_settings(), connection.kafka_python_settings()
    assert ours["sasl.mechanism"] == theirs["sasl_mechanism"] == "OAUTHBEARER"
    assert ours["oauth_cb"]("")[0] == theirs["sasl_oauth_token_provider"].token()
    assert "aws-secret" not in str(ours) + repr(connection)


def test_without_credentials_or_the_signer_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/no/such")
    for said in ("Give the machine a role", r"Install rehome\[msk\]"):
        with pytest.raises(ClusterUnreachableError, match=said) as raised:
            MskIam("eu-central-1").fetch(5)
        assert raised.value.cause is Unreachable.NO_CREDENTIALS
        monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)


def test_a_region_that_is_not_known_and_a_listener_without_tls_are_refused() -> None:
    elsewhere = MSK | {"bootstrap.servers": "b1:9098", "security.protocol": "SASL_PLAINTEXT"}
    with pytest.raises(InvalidRequestError) as raised:
        Connection.from_settings(elsewhere)
    assert "needs rehome.aws.region" in str(raised.value)
    assert "needs SASL_SSL" in str(raised.value)
    named = MSK | {"bootstrap.servers": "b1:9098", "rehome.aws.region": "eu-west-1"}
    role = {"rehome.aws.role.arn": "arn:aws:iam::1:role/kafka"}
    assert Connection.from_settings(named).principal == "the AWS credentials of this machine"
    assert "role/kafka" in Connection.from_settings(named | role).principal
