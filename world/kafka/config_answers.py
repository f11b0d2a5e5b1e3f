"""What brokers answer about configs: as one broker knows them, and one client may see them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from rehome.domain.kafka import (
    BrokerError,
    ConfigValue,
)
from world.kafka import config_rules
from world.kafka import errors as codes
from world.kafka.acls import AclResource, Operation
from world.kafka.config_definitions import SCHEMA, Kind
from world.kafka.errors import Refusal
from world.kafka.nodes import Node
from world.kafka.topic_names import check_topic_name

if TYPE_CHECKING:
    from world.kafka.calling import CallingPort

CLUSTER_DEFAULT = ConfigResource.cluster_default()


def of_one_broker(resource: ConfigResource) -> bool:
    """Whether only one broker answers for it."""
    return resource.type is ResourceType.BROKER and bool(resource.name)


def topic_of(resource: ConfigResource) -> str | None:
    """The topic whose configs these are."""
    return resource.name if resource.type is ResourceType.TOPIC else None


def configs(
    port: CallingPort, node: Node, resource: ConfigResource, keys: Collection[str] | None
) -> dict[str, ConfigValue] | BrokerError:
    """DescribeConfigs of one resource at one broker."""
    image = node.view.image
    kind = AclResource.TOPIC if resource.type is ResourceType.TOPIC else AclResource.CLUSTER
    name = resource.name if kind is AclResource.TOPIC else "kafka-cluster"
    if not port.may(image, Operation.DESCRIBE_CONFIGS, kind, name):
        return (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if kind is AclResource.TOPIC
            else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        ).error()
    default = image.config(CLUSTER_DEFAULT)
    of_broker = image.config(ConfigResource.broker(node.id)), default, node.static
    if kind is AclResource.TOPIC:
        try:
            check_topic_name(resource.name)
        except Refusal as refusal:
            return refusal.error
        if resource.name not in image.topics:
            return codes.error(codes.UNKNOWN_TOPIC_OR_PARTITION)
        broker = config_rules.describe_broker(*of_broker, config_rules.synonyms(keys))
        return config_rules.describe_topic(image.config(resource), broker, keys)
    if resource.name:
        return config_rules.describe_broker(*of_broker, keys)
    found = config_rules.describe_default(default)
    return {key: value for key, value in found.items() if keys is None or key in keys}


def altered(
    port: CallingPort,
    node: Node | None,
    resource: ConfigResource,
    changes: Sequence[ConfigChange],
    validate_only: bool,
) -> BrokerError | None:
    """IncrementalAlterConfigs of one resource, at a broker or (None) at the controller itself."""

    def ask() -> None:
        config_rules.check_request(changes)
        if resource.type is ResourceType.BROKER and node is not None:
            _check_at_broker(node, resource, changes)
        world = port.world
        topic = resource.type is ResourceType.TOPIC
        kind = AclResource.TOPIC if topic else AclResource.CLUSTER
        name = resource.name if topic else "kafka-cluster"
        if not port.may(world.image, Operation.ALTER_CONFIGS, kind, name):
            raise Refusal(
                codes.TOPIC_AUTHORIZATION_FAILED if topic else codes.CLUSTER_AUTHORIZATION_FAILED
            )
        port.controller.alter_configs(resource, changes, validate_only)

    return port.controller.error_of(ask)


def _check_at_broker(node: Node, resource: ConfigResource, changes: Sequence[ConfigChange]) -> None:
    for change in changes:
        if change.operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
            known = SCHEMA.broker.get(change.key)
            if known is None or known.hidden:
                raise Refusal(codes.INVALID_CONFIG, f"Unknown config name: {change.key}")
            if known.kind is not Kind.LIST:
                how = change.operation.name.lower()
                raise Refusal(
                    codes.INVALID_CONFIG,
                    f"Config value {how} is not allowed for config key: {change.key}",
                )
    now = node.view.image.config(resource)
    values = config_rules.altered(resource, now, changes)
    config_rules.check_broker_values(resource, values, tuple(node.disks))


def lists_joined(changes: Sequence[ConfigChange]) -> list[ConfigChange]:
    """Items appended to (or taken from) one list in one operation, as the client sends them."""
    joined: dict[object, ConfigChange] = {}
    for place, change in enumerate(changes):
        lists = change.operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT)
        key = (change.resource, change.key, change.operation) if lists else place
        if key in joined:
            change = replace(change, value=f"{joined[key].value},{change.value}")
        joined[key] = change
    return list(joined.values())
