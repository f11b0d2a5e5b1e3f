"""A cluster in memory, for tests with thousands of runs: reassigns as the controller does.

Only for properties of `decide` and `advance` over random plans and crashes; what real brokers
do is shown on real brokers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import (
    Broker,
    BrokerError,
    BrokerId,
    ClusterDescription,
    ConfigValue,
    HighWatermark,
    LogDir,
    OngoingReassignment,
    Partial,
    PartitionState,
    ReplicaId,
    ReplicaOnDisk,
    SupportedVersions,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from rehome.execution.throttle.keys import source_of, split

ABLE = SupportedVersions({35: 5, 45: 1}, {"metadata.version": 33})
"""What a broker of Kafka 4.4 can, as far as Rehome asks."""


class Crash(BaseException):
    """The process dies here. Not an Exception: nothing may catch it."""


class SimulatedCluster:
    """Implements the part of ClusterPort that an execution needs.

    :param brokers: ids; all alive until :meth:`kill`.
    :param moves: the partitions that exist, with the replicas they start from.
    :param features: finalized ones, by name.
    """

    def __init__(
        self,
        brokers: Collection[BrokerId],
        moves: Collection[Move],
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.live = set(brokers)
        self.replicas = {move.partition: move.current for move in moves}
        self.whole = {move.partition: move.size_bytes for move in moves}
        self.copied: dict[ReplicaId, int] = {}
        self.targets: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        self.started: list[TopicPartition] = []
        self.configs: dict[tuple[ConfigResource, str], str] = {}
        self.features = dict(features or {})
        self.calls = 0
        self.crash_at: int | None = None

    def step(self, size_bytes: int) -> None:
        """Every replica that is being added receives so many bytes."""
        for partition, target in list(self.targets.items()):
            for broker in set(target) - set(self.replicas[partition]):
                replica = ReplicaId(*partition, broker)
                if broker in self.live:
                    self.copied[replica] = self.copied.get(replica, 0) + size_bytes
            if all(broker in self.live and self._has(partition, broker) for broker in target):
                self.replicas[partition] = target
                del self.targets[partition]

    def kill(self, broker: BrokerId) -> None:
        self.live.discard(broker)

    def _has(self, partition: TopicPartition, broker: BrokerId) -> bool:
        if broker in self.replicas[partition]:
            return True
        return self.copied.get(ReplicaId(*partition, broker), 0) >= self.whole[partition]

    def _crash_here(self) -> bool:
        self.calls += 1
        return self.calls == self.crash_at

    # -- ClusterPort ---------------------------------------------------------------------------

    def describe_cluster(self) -> ClusterDescription:
        brokers = {broker: Broker(broker, "sim", 0, None) for broker in self.live}
        return ClusterDescription("sim", None, brokers, None)

    def describe_topics(
        self, names: Collection[str] | None = None, *, operations: bool = False
    ) -> dict[str, TopicDescription]:
        found: dict[str, dict[int, PartitionState]] = {name: {} for name in names or ()}
        for partition, replicas in self.replicas.items():
            if partition.topic in found:
                found[partition.topic][partition.partition] = self.state_of(partition, replicas)
        return {name: TopicDescription(name, name, False, rows) for name, rows in found.items()}

    def current_topics(self, names: Collection[str] | None) -> dict[str, TopicDescription]:
        return self.describe_topics(names)

    def state_of(self, partition: TopicPartition, replicas: tuple[BrokerId, ...]) -> PartitionState:
        target = self.targets.get(partition, replicas)
        shown = (*target, *(broker for broker in replicas if broker not in target))
        in_sync = [b for b in shown if b in self.live and self._has(partition, b)]
        leader = next((broker for broker in replicas if broker in self.live), None)
        return PartitionState(leader, shown, frozenset(in_sync))

    def list_reassignments(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        return {
            partition: OngoingReassignment(
                replicas=self.state_of(partition, self.replicas[partition]).replicas,
                adding=tuple(b for b in target if b not in self.replicas[partition]),
                removing=tuple(b for b in self.replicas[partition] if b not in target),
            )
            for partition, target in self.targets.items()
        }

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> dict[TopicPartition, BrokerError | None]:
        if self._crash_here():
            raise Crash
        answers = {p: self._alter(p, target) for p, target in targets.items()}
        if self._crash_here():
            raise Crash
        return answers

    def _alter(
        self, partition: TopicPartition, target: Sequence[BrokerId] | None
    ) -> BrokerError | None:
        if target is None:
            if partition not in self.targets:
                return BrokerError(85, "NO_REASSIGNMENT_IN_PROGRESS")
            kept = [b for b in self.targets.pop(partition) if b in self.replicas[partition]]
            back = [b for b in self.replicas[partition] if b not in kept]
            self.replicas[partition] = (*kept, *back)
            return None
        if set(target) == set(self.replicas[partition]):
            self.targets.pop(partition, None)
            self.replicas[partition] = tuple(target)
        else:
            self.started.append(partition)
            self.targets[partition] = tuple(target)
        return None

    def describe_log_dirs(
        self,
        brokers: Collection[BrokerId] | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> Partial[list[LogDir]]:
        dirs = []
        for broker in brokers or ():
            rows = {
                partition: ReplicaOnDisk(self._size(partition, broker), 0, False)
                for partition in partitions or ()
                if self._size(partition, broker) is not None
            }
            dirs.append(LogDir(broker, "/d", None, None, None, None, rows))
        return Partial(dirs)

    def _size(self, partition: TopicPartition, broker: BrokerId) -> Any:
        if broker in self.replicas[partition]:
            return self.whole[partition]
        return self.copied.get(ReplicaId(*partition, broker))

    def log_end_offsets(
        self, replicas: Collection[ReplicaId]
    ) -> Partial[dict[ReplicaId, int | BrokerError]]:
        return Partial(
            {
                replica: BrokerError(6, "NOT_LEADER_OR_FOLLOWER") if size is None else size
                for replica in replicas
                for size in [self._size(replica.topic_partition, replica.broker)]
            }
        )

    def log_start_offsets(
        self, replicas: Collection[ReplicaId]
    ) -> Partial[dict[ReplicaId, int | BrokerError]]:
        return Partial(dict.fromkeys(replicas, 0))

    def high_watermarks(
        self, leaders: Mapping[TopicPartition, BrokerId]
    ) -> Partial[dict[TopicPartition, HighWatermark | BrokerError]]:
        return Partial({p: HighWatermark(self.whole[p], 0) for p in leaders})

    def finalized_features(self) -> dict[str, int]:
        return self.features

    def supported_versions(
        self, brokers: Collection[BrokerId]
    ) -> Partial[dict[BrokerId, SupportedVersions]]:
        return Partial({broker: ABLE for broker in brokers if broker in self.live})

    def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str] | None = None
    ) -> dict[ConfigResource, dict[str, ConfigValue] | BrokerError]:
        return {
            resource: {
                key: self.value(resource, value)
                for (where, key), value in self.configs.items()
                if where == resource and (keys is None or key in keys)
            }
            for resource in resources
        }

    @staticmethod
    def value(resource: ConfigResource, value: str) -> ConfigValue:
        """As a broker reports it."""
        return ConfigValue(value, source_of(resource))

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> dict[ConfigResource, BrokerError | None]:
        if self._crash_here():
            raise Crash
        for change in changes:
            self._alter_config(change)
        if self._crash_here():
            raise Crash
        return {change.resource: None for change in changes}

    def _alter_config(self, change: ConfigChange) -> None:
        """As the controller does; a SUBTRACT leaves an empty value where no key was."""
        where = (change.resource, change.key)
        present, items = split(self.configs.get(where)), split(change.value)
        match change.operation:
            case ConfigOperation.SET:
                self.configs[where] = change.value or ""
            case ConfigOperation.DELETE:
                self.configs.pop(where, None)
            case ConfigOperation.APPEND:
                self.configs[where] = ",".join(dict.fromkeys([*present, *items]))
            case ConfigOperation.SUBTRACT:
                self.configs[where] = ",".join(item for item in present if item not in items)

    def __getattr__(self, name: str) -> Any:
        raise ClusterError(f"the simulated cluster has no {name}")
