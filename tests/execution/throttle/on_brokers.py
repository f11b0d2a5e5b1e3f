"""What is set of throttles on real brokers, and what another client sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LISTS,
    LOG_DIR_RATE,
    own_value,
)
from rehome.execution.throttle.ownership.marks import DEFAULT, is_mark
from tests.agreed_configs import agreed_configs

RATES = (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)
BROKERS = [ConfigResource.broker(broker) for broker in (1, 2, 3, 4)]


def throttle_settings(
    gateway: ClusterGateway, *topics: str, brokers: Sequence[ConfigResource] = BROKERS
) -> dict[Any, str | None]:
    """Every throttle configuration that is set: of these topics, brokers and their default.

    Once all brokers show the same: one under load is behind for a moment.
    """
    resources = [*(ConfigResource.topic(topic) for topic in topics), DEFAULT, *brokers]
    found = agreed_configs(gateway, resources, [*LISTS, *RATES])
    return {
        (resource, key): own_value(resource, configs[key])
        for resource, configs in found.items()
        if not isinstance(configs, BrokerError)
        for key in configs
        if own_value(resource, configs[key]) is not None
    }


def set_config(gateway: ClusterGateway, resource: ConfigResource, key: str, value: str) -> None:
    """As another client; it returns when all brokers show it."""
    change = ConfigChange(resource, key, ConfigOperation.SET, value)
    assert gateway.alter_configs([change]) == {resource: None}

    def there() -> bool:
        configs = agreed_configs(gateway, [resource], [key])[resource]
        return isinstance(configs, dict) and own_value(resource, configs.get(key)) == value

    wait_until(there, f"{key} to be set")


def marks(gateway: ClusterGateway) -> list[str]:
    """Names of all marks, once all brokers show the same."""
    found = agreed_configs(gateway, [DEFAULT], None)[DEFAULT]
    return [key for key in found if is_mark(key)] if isinstance(found, dict) else []


@pytest.fixture(autouse=True)
def leave_no_rates(gateway: ClusterGateway) -> Iterator[None]:
    """The cluster is shared: what a failed test has left must not fail the next ones."""
    yield
    left = [*throttle_settings(gateway), *((DEFAULT, mark) for mark in marks(gateway))]
    changes = [ConfigChange(resource, key, ConfigOperation.DELETE) for resource, key in left]
    if changes:
        gateway.alter_configs(changes)
        wait_until(lambda: not throttle_settings(gateway), "rates to go")
