"""Requests and answers about configs, the cluster-wide default included (KIP-226, KIP-339). No I/O.

librdkafka cannot name the cluster-wide default, nor ask for some keys only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from rehome.cluster.interface.errors import broker_error, verdict
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from rehome.domain.kafka import BrokerError, ConfigValue

RESOURCE_CODES = {ResourceType.TOPIC: 2, ResourceType.BROKER: 4}
RESOURCE_TYPES = {code: type_ for type_, code in RESOURCE_CODES.items()}
CONFIG_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "CLIENT_METRICS_CONFIG",
    8: "GROUP_CONFIG",
}


def describe_configs_request(
    resources: Sequence[ConfigResource], keys: Collection[str] | None
) -> Any:
    """DescribeConfigs, of some keys or of all."""
    resource_type = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource_type(
                resource_type=RESOURCE_CODES[resource.type],
                resource_name=resource.name,
                configuration_keys=None if keys is None else sorted(keys),
            )
            for resource in resources
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def read_describe_configs(
    response: Any,
) -> dict[ConfigResource, dict[str, ConfigValue] | BrokerError]:
    """Values with their sources, or the broker's refusal, per resource."""
    answers: dict[ConfigResource, dict[str, ConfigValue] | BrokerError] = {}
    for result in response.results:
        if result.error_code:
            answers[_resource(result)] = broker_error(result.error_code, result.error_message)
        else:
            answers[_resource(result)] = {
                config.name: ConfigValue(
                    config.value, CONFIG_SOURCES.get(config.config_source, "UNKNOWN")
                )
                for config in result.configs
            }
    return answers


def alter_configs_request(changes: Sequence[ConfigChange], *, validate_only: bool) -> Any:
    """IncrementalAlterConfigs. Brokers refuse a key that comes twice, so items appended to (or
    taken from) one list are joined into one operation.
    """
    resource_type = IncrementalAlterConfigsRequest.AlterConfigsResource
    grouped: dict[ConfigResource, list[ConfigChange]] = defaultdict(list)
    for change in changes:
        grouped[change.resource].append(change)
    return IncrementalAlterConfigsRequest(
        resources=[
            resource_type(
                resource_type=RESOURCE_CODES[resource.type],
                resource_name=resource.name,
                configs=[
                    resource_type.AlterableConfig(
                        name=change.key, config_operation=int(change.operation), value=change.value
                    )
                    for change in _lists_joined(of_resource)
                ],
            )
            for resource, of_resource in grouped.items()
        ],
        validate_only=validate_only,
    )


def read_alter_configs(response: Any) -> dict[ConfigResource, BrokerError | None]:
    """The broker's verdict per resource."""
    return {
        _resource(result): verdict(result.error_code, result.error_message)
        for result in response.responses
    }


def _lists_joined(changes: Sequence[ConfigChange]) -> list[ConfigChange]:
    joined: list[ConfigChange] = []
    lists: dict[tuple[str, ConfigOperation], int] = {}
    for change in changes:
        place = lists.get((change.key, change.operation))
        if place is not None:
            value = f"{joined[place].value},{change.value}"
            joined[place] = replace(joined[place], value=value)
            continue
        if change.operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
            lists[change.key, change.operation] = len(joined)
        joined.append(change)
    return joined


def _resource(result: Any) -> ConfigResource:
    return ConfigResource(RESOURCE_TYPES[result.resource_type].value, result.resource_name)
