"""Other hands on the cluster: Kafka's own tool, and an admin. They know nothing of Rehome."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerId, ReplicaId, Replicas, TopicPartition
from world.script import Do, Topic, What

LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


@dataclass(frozen=True)
class KafkaTool:
    """``kafka-reassign-partitions``: ReassignPartitionsCommand of Kafka 4.3."""

    port: ClusterPort

    def execute(self, partition: TopicPartition, target: Replicas, rate: int | None) -> None:
        """``--execute``; refuses while anything is being reassigned."""
        if self.port.list_reassignments():
            return
        state = self.port.describe_topics([partition.topic])[partition.topic].partitions.get(
            partition.partition
        )
        if state is None:
            return
        if rate is not None:
            self._throttle(partition, state.replicas, target, rate)
        self.port.alter_reassignments({partition: target})

    def _throttle(
        self, partition: TopicPartition, current: Replicas, target: Replicas, rate: int
    ) -> None:
        adding = [broker for broker in target if broker not in current]
        topic = ConfigResource.topic(partition.topic)
        values = [
            ",".join(f"{partition.partition}:{b}" for b in side) for side in (current, adding)
        ]
        changes = [
            ConfigChange(topic, key, ConfigOperation.SET, value)
            for key, value in zip(LISTS, values, strict=True)
        ]
        changes += [
            ConfigChange(ConfigResource.broker(broker), key, ConfigOperation.SET, str(rate))
            for broker in sorted({*current, *target})
            for key in RATES
        ]
        self.port.alter_configs(changes)

    def verify(self, partition: TopicPartition) -> None:
        """``--verify``: where nothing of it is in flight, throttles are deleted: also others'."""
        if not self.port.list_reassignments([partition]):
            self._clear([partition.topic])

    def cancel(self, topic: str) -> None:
        """``--cancel`` of a topic's partitions."""
        ongoing = [p for p in self.port.list_reassignments() if p.topic == topic]
        if ongoing:
            self.port.alter_reassignments(dict.fromkeys(sorted(ongoing)))
        self._clear([topic])

    def _clear(self, topics: Collection[str]) -> None:
        brokers: list[BrokerId] = sorted(self.port.describe_cluster().brokers)
        delete = ConfigOperation.DELETE
        changes = [
            ConfigChange(ConfigResource.broker(b), k, delete) for b in brokers for k in RATES
        ]
        changes += [ConfigChange(ConfigResource.topic(t), k, delete) for t in topics for k in LISTS]
        self.port.alter_configs(changes)


def act(port: ClusterPort, does: Do, topics: dict[str, Topic]) -> None:
    """Do what an admin does; what the cluster refuses, or does not answer, is left."""
    try:
        _act(port, does, topics)
    except ClusterError:
        return


def _act(port: ClusterPort, does: Do, topics: dict[str, Topic]) -> None:
    args, tool = does.args, KafkaTool(port)
    match does.what:
        case What.CREATE_TOPIC:
            port.create_topics({args[0]: topics[args[0]].partitions}, {})
        case What.REASSIGN:
            wanted = {TopicPartition(args[0], args[1]): args[2]}
            port.alter_reassignments(wanted, allow_replication_factor_change=True)
        case What.CANCEL_ALL:
            tool.cancel(args[0])
        case What.TOOL_EXECUTE:
            tool.execute(TopicPartition(args[0], args[1]), args[2], args[3])
        case What.TOOL_VERIFY:
            tool.verify(TopicPartition(args[0], args[1]))
        case What.MOVE_LOG_DIR:
            _move_log_dir(port, ReplicaId(*args))
        case _:
            port.alter_configs([config_change(does)])


def _move_log_dir(port: ClusterPort, replica: ReplicaId) -> None:
    """AlterReplicaLogDirs: to another log dir of the replica's broker."""
    part = TopicPartition(replica.topic, replica.partition)
    dirs = port.describe_log_dirs([replica.broker]).value
    other = [one.path for one in dirs if part not in one.replicas]
    if other and len(other) < len(dirs):
        port.alter_replica_log_dirs({replica: other[0]})


def config_change(does: Do) -> ConfigChange:
    """The change of an admin who edits a throttle."""
    args = does.args
    if does.what in (What.SET_RATE, What.DELETE_RATE):
        broker = args[0]
        where = (
            ConfigResource.cluster_default() if broker is None else ConfigResource.broker(broker)
        )
    else:
        where = ConfigResource.topic(args[0])
    match does.what:
        case What.SET_RATE | What.SET_LIST:
            return ConfigChange(where, args[1], ConfigOperation.SET, str(args[2]))
        case What.ADD_TO_LIST:
            return ConfigChange(where, args[1], ConfigOperation.APPEND, args[2])
        case What.DELETE_RATE | What.DELETE_LIST:
            return ConfigChange(where, args[1], ConfigOperation.DELETE)
        case _:
            raise ValueError(f"{does.what} changes no configuration")
