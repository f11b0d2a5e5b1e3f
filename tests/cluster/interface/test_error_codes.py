"""The codes that Rehome decides by, against librdkafka's table of them."""

from __future__ import annotations

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import broker_error
from rehome.domain.kafka import BrokerError


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_a_code_has_the_name_that_librdkafka_gives_it(code: ErrorCode) -> None:
    assert broker_error(code) == code.error() == BrokerError(int(code), code.name)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (17, "INVALID_TOPIC_EXCEPTION"),
        (31, "CLUSTER_AUTHORIZATION_FAILED"),
        (39, "INVALID_REPLICA_ASSIGNMENT"),
        (85, "NO_REASSIGNMENT_IN_PROGRESS"),
    ],
)
def test_errors_have_the_names_of_kafkas_protocol(number: int, name: str) -> None:
    assert broker_error(number) == BrokerError(number, name)
