"""The cordon of a broker, on real brokers (KIP-1066)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerId
from rehome.execution.throttle.keys import CORDONED, own_value


def cordon_of(gateway: ClusterGateway, broker: BrokerId) -> str | None:
    """The log dirs that take no new replicas, as the broker's own configuration names them."""
    resource = ConfigResource.broker(broker)
    configs = gateway.describe_configs([resource], [CORDONED])[resource]
    assert isinstance(configs, dict), configs
    return own_value(resource, configs.get(CORDONED))


@contextmanager
def uncordoned_afterwards(gateway: ClusterGateway, broker: BrokerId) -> Iterator[None]:
    """Nothing of the cordon is left behind."""
    yield
    resource = ConfigResource.broker(broker)
    gateway.alter_configs([ConfigChange(resource, CORDONED, ConfigOperation.DELETE)])
    wait_until(lambda: cordon_of(gateway, broker) is None, "the cordon to be gone")
