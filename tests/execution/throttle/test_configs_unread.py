"""What is said of configurations that cannot be read."""

from __future__ import annotations

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigResource
from rehome.execution.throttle.configs import raise_unread

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
