"""The calls that the execution side needs from a cluster.

``rehome.cluster.gateway.ClusterGateway`` implements it on a real cluster; the simulator does
on a simulated one. Nothing in ``rehome.planning`` or ``rehome.execution`` imports the gateway.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from rehome.domain.configs import ConfigChange, ConfigResource
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    ClusterDescription,
    ConfigValue,
    ConsumerGroup,
    HighWatermark,
    LogDir,
    OngoingReassignment,
    Partial,
    ReplicaId,
    SupportedVersions,
    TopicDescription,
    TopicPartition,
)


class ClusterPort(Protocol):
    """Reads and writes of one cluster, each bounded in time.

    Reads that involve several brokers return a :class:`Partial`. Writes return the broker's
    verdict per item: None where it was accepted. A call that fails as a whole raises
    ``rehome.cluster.interface.errors.ClusterError`` (or a subclass that names the missing right).
    """

    @property
    def name(self) -> str:
        """How people know the connection."""
        ...

    def describe_cluster(self) -> ClusterDescription: ...

    def finalized_features(self) -> Mapping[str, int]: ...

    def supported_versions(
        self, brokers: Collection[BrokerId]
    ) -> Partial[dict[BrokerId, SupportedVersions]]: ...

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

    def high_watermarks(
        self, leaders: Mapping[TopicPartition, BrokerId]
    ) -> Partial[dict[TopicPartition, HighWatermark | BrokerError]]: ...

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

    def create_topics(
        self,
        assignments: Mapping[str, Sequence[Sequence[BrokerId]]],
        configs: Mapping[str, Mapping[str, str]],
        *,
        validate_only: bool = False,
    ) -> dict[str, BrokerError | None]: ...

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]: ...
