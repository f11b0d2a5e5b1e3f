"""Configs on which all brokers agree: each of them follows the metadata log by itself."""

from __future__ import annotations

from collections.abc import Collection

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.rights import Call
from rehome.cluster.messages.configs import describe_configs_request, read_describe_configs
from rehome.domain.configs import ConfigResource, ResourceType
from rehome.domain.kafka import BrokerError, ConfigValue

Configs = dict[ConfigResource, dict[str, ConfigValue] | BrokerError]


def agreed_configs(
    gateway: ClusterGateway,
    resources: Collection[ConfigResource],
    keys: Collection[str] | None = None,
) -> Configs:
    """As :meth:`ClusterGateway.describe_configs`, once every broker that answers shows the same of
    topics and of the brokers' default: a later call may go to any of them.
    """
    own = {int(r.name): r for r in resources if r.type is ResourceType.BROKER and r.name}
    shared = [resource for resource in resources if resource not in own.values()]

    def agreed() -> Configs | None:
        asked = {
            broker: [*shared, *([own[broker]] if broker in own else [])]
            for broker in {*gateway.describe_cluster().brokers, *own}
        }
        requests = {
            broker: describe_configs_request(each, keys) for broker, each in asked.items() if each
        }
        answers, missing = gateway.clients.ask(
            Call.DESCRIBE_CONFIGS, lambda: gateway.clients.reads.ask_each(requests)
        )
        found: Configs = {own[broker]: error for broker, error in missing.items() if broker in own}
        for answer in answers.values():
            for resource, configs in read_describe_configs(answer).items():
                if found.setdefault(resource, configs) != configs:
                    return None
        return found if found.keys() == set(resources) else None

    found = wait_until(agreed, "all brokers to show the same configs")
    assert found is not None
    return found
