"""Kafka's dynamic configs: what has them, and changes of them (KIP-226, KIP-339)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from rehome.domain.kafka import BrokerError, BrokerId, ConfigValue

MIN_ISR = "min.insync.replicas"


class ResourceType(enum.Enum):
    """Config resources Rehome touches."""

    TOPIC = "topic"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, order=True)
class ConfigResource:
    """A config resource. A BROKER with the empty name is the cluster-wide default."""

    type_value: str
    name: str

    def __str__(self) -> str:
        """In words: "topic payments", "broker 3", "the brokers' default"."""
        if self == ConfigResource.cluster_default():
            return "the brokers' default"
        return f"{self.type_value} {self.name}"

    @property
    def type(self) -> ResourceType:
        """The resource's type."""
        return ResourceType(self.type_value)

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """The configs of a topic."""
        return cls(ResourceType.TOPIC.value, name)

    @classmethod
    def broker(cls, broker: BrokerId) -> ConfigResource:
        """The dynamic configs of one broker; only that broker accepts changes to them."""
        return cls(ResourceType.BROKER.value, str(broker))

    @classmethod
    def cluster_default(cls) -> ConfigResource:
        """The cluster-wide dynamic default of all brokers."""
        return cls(ResourceType.BROKER.value, "")


Configs = Mapping[ConfigResource, Mapping[str, ConfigValue]]
DescribedConfigs = Mapping[ConfigResource, Mapping[str, ConfigValue] | BrokerError]
"""What DescribeConfigs answers: the error where a resource could not be read."""


class ConfigOperation(enum.IntEnum):
    """IncrementalAlterConfigs' operations, with Kafka's own numbers (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One operation of IncrementalAlterConfigs. List items are joined with commas."""

    resource: ConfigResource
    key: str
    operation: ConfigOperation
    value: str | None = None
