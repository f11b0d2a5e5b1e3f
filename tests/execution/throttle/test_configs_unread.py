"""What is said of configurations that cannot be read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import ConfigValue
from rehome.execution.throttle.configs import raise_unread, settle_what_can_be
from rehome.execution.throttle.keys import LEADER_RATE

A, B = ConfigResource.topic("a"), ConfigResource.topic("b")
BROKER = ConfigResource.broker(3)
NO_RIGHT = ErrorCode.TOPIC_AUTHORIZATION_FAILED.error("no right")
AWAY = ErrorCode.REQUEST_TIMED_OUT.error("no answer")


def test_all_resources_are_named_by_what_the_brokers_say_of_them() -> None:
    raise_unread({})
    with pytest.raises(ClusterError) as raised:
        raise_unread({A: NO_RIGHT, BROKER: AWAY, B: NO_RIGHT})
    assert f"throttle of {A}, {B} cannot be read (that of {BROKER}: {AWAY}): {NO_RIGHT}" in str(
        raised.value
    )
    assert raised.value.error == NO_RIGHT


def test_one_resource_is_named_alone() -> None:
    with pytest.raises(ClusterError) as raised:
        raise_unread({BROKER: AWAY})
    assert f"throttle of {BROKER} cannot be read: {AWAY}" in str(raised.value)


def test_what_was_read_while_another_broker_was_silent_is_read_once_more() -> None:
    """It is as old as that broker's time limit is long, and may have changed since."""
    late, other = ConfigResource.broker(2), ConfigResource.broker(3)
    values = iter(["5000000", "5000000", "500000", "500000"])

    def describe(resources: Any, keys: Any) -> dict[ConfigResource, Any]:
        there = {LEADER_RATE: ConfigValue(next(values), "DYNAMIC_BROKER_CONFIG")}
        silent: Any = AWAY if other in asked_before else {}
        answers = {late: silent, other: there}
        asked_before.update(resources)
        return {resource: answers[resource] for resource in resources}

    asked_before: set[ConfigResource] = set()
    cluster: Any = SimpleNamespace(describe_configs=describe)
    settled, unread = settle_what_can_be(cluster, [late, other], [LEADER_RATE])
    assert settled[other][LEADER_RATE].value == "500000"
    assert unread == {late: AWAY}
    assert next(values, None) is None
