"""The calls that the execution side needs from a cluster.

``include.cluster.gateway.ClusterGateway`` implements it on a real cluster; the simulator does
on a simulated one. Nothing in ``include.planning`` or ``include.execution`` imports the gateway.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from include.domain.kafka import (
    BrokerError,
    BrokerId,
    ClusterDescription,
    ConfigValue,
    ConsumerGroup,
    LogDir,
    OngoingReassignment,
    Partial,
    ReplicaId,
    TopicDescription,
    TopicPartition,
)


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


class ClusterPort(Protocol):
    """Reads and writes of one cluster, each bounded in time.

    Reads that involve several brokers return a :class:`Partial`. Writes return the broker's
    verdict per item: None where it was accepted. A call that fails as a whole raises
    ``include.cluster.errors.ClusterError`` (or a subclass that names the missing right).
    """

    @property
    def name(self) -> str:
        """How people know the connection."""
        ...

    def describe_cluster(self) -> ClusterDescription: ...

    def finalized_features(self) -> Mapping[str, int]: ...

    def describe_topics(
        self, names: Collection[str] | None = None, *, operations: bool = False
    ) -> dict[str, TopicDescription]: ...

    def current_topics(self, names: Collection[str] | None) -> dict[str, TopicDescription]: ...

    def list_reassignments(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]: ...

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> dict[TopicPartition, BrokerError | None]: ...

    def describe_log_dirs(
        self,
        brokers: Collection[BrokerId] | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> Partial[list[LogDir]]: ...

    def alter_replica_log_dirs(
        self, targets: Mapping[ReplicaId, str]
    ) -> dict[ReplicaId, BrokerError | None]: ...

    def log_end_offsets(
        self, replicas: Collection[ReplicaId]
    ) -> Partial[dict[ReplicaId, int | BrokerError]]: ...

    def log_start_offsets(
        self, replicas: Collection[ReplicaId]
    ) -> Partial[dict[ReplicaId, int | BrokerError]]: ...

    def consumer_groups(self) -> Partial[list[ConsumerGroup]]: ...

    def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str] | None = None
    ) -> dict[ConfigResource, dict[str, ConfigValue] | BrokerError]: ...

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> dict[ConfigResource, BrokerError | None]: ...

    def create_partitions(
        self,
        totals: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[BrokerId]]] | None = None,
        *,
        validate_only: bool = False,
    ) -> dict[str, BrokerError | None]: ...

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]: ...
