"""What brokers answer: states of the world, as one broker knows it and as one client may see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError, MissingRightError
from rehome.cluster.interface.rights import Call, naming_right
from rehome.domain.kafka import (
    Broker,
    BrokerError,
    BrokerId,
    ClusterDescription,
    ConsumerGroup,
    HighWatermark,
    LogDir,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    ReplicaOnDisk,
    SupportedVersions,
    TopicDescription,
    TopicPartition,
)
from world.kafka import errors as codes
from world.kafka.acls import ON, AclResource, Operation
from world.kafka.errors import Refusal
from world.kafka.log import Log
from world.kafka.metadata import Image, Partition, PartitionKey
from world.kafka.nodes import FutureReplica, Node, Replica
from world.kafka.topic_names import check_topic_name
from world.kafka.world_state import WorldState

if TYPE_CHECKING:
    from world.kafka.calling import CallingPort
    from world.kafka.cluster import KafkaModel

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
FIRST_PORT = 9092
Offset = Callable[[Log], float]


SUPPORTED = {
    (4, 0): SupportedVersions({35: 4, 45: 0}, {"metadata.version": 25}),
    (4, 3): SupportedVersions({35: 5, 45: 1}, {"metadata.version": 30}),
    (4, 4): SupportedVersions({35: 5, 45: 1}, {"metadata.version": 33}),
}
"""What brokers of a version can, as far as Rehome asks: AlterPartitionReassignments (45) has had
its switch for the replication factor since 4.1, DescribeLogDirs (35) cordons since 4.3."""


def supported_versions(node: Node) -> SupportedVersions:
    """ApiVersions, of the newest version that is not newer than the node's."""
    known = [version for version in SUPPORTED if version <= node.spec.version]
    return SUPPORTED[max(known, default=min(SUPPORTED))]


# -- metadata -------------------------------------------------------------------------------------


def cluster(model: KafkaModel, port: CallingPort, node: Node) -> ClusterDescription:
    """DescribeCluster: brokers that are not fenced. As controller KRaft names any of them."""
    image = node.view.image
    brokers = {
        one.broker: Broker(one.broker, f"broker{one.broker}", FIRST_PORT, one.rack)
        for one in sorted(image.brokers.values(), key=lambda known: known.broker)
        if not one.fenced
    }
    operations: frozenset[str] = frozenset()
    if port.may(image, Operation.DESCRIBE, AclResource.CLUSTER):
        operations = _operations(port, image, AclResource.CLUSTER, "kafka-cluster")
    controller = model.world.rng.choice(sorted(brokers)) if brokers else None
    return ClusterDescription(model.cluster_id, controller, brokers, operations)


def topics(
    port: CallingPort, image: Image, names: Collection[str] | None, operations: bool
) -> dict[str, TopicDescription]:
    """Metadata: of all topics those that the principal may not describe are left out."""
    if names is None:
        visible = [name for name in sorted(image.topics) if _describes(port, image, name)]
        return {name: _topic(port, image, name, operations) for name in visible}
    return {name: _topic(port, image, name, operations) for name in sorted(set(names))}


def _describes(port: CallingPort, image: Image, name: str) -> bool:
    return port.may(image, Operation.DESCRIBE, AclResource.TOPIC, name)


def _topic(port: CallingPort, image: Image, name: str, operations: bool) -> TopicDescription:
    if not _describes(port, image, name):
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED.error()
        return _without(name, naming_right(refused, Call.DESCRIBE_TOPICS, name))
    may = _operations(port, image, AclResource.TOPIC, name) if operations else None
    if name not in image.topics:
        try:
            check_topic_name(name)
        except Refusal as refusal:
            return replace(_without(name, replace(refusal.error, message="")), operations=may)
        unknown = codes.error(codes.UNKNOWN_TOPIC_OR_PARTITION)
        return replace(_without(name, unknown), operations=may)
    return TopicDescription(
        name=name,
        topic_id=image.topics[name],
        internal=name in INTERNAL,
        partitions={
            number: PartitionState(_led(image, part), part.replicas, frozenset(part.isr))
            for number, part in image.of_topic(name).items()
        },
        operations=may,
    )


def _led(image: Image, part: Partition) -> BrokerId | None:
    """A leader that the broker knows to be gone is not named."""
    known = image.brokers.get(part.leader) if part.leader is not None else None
    return part.leader if known is not None and not known.fenced else None


def _without(name: str, error: BrokerError) -> TopicDescription:
    return TopicDescription(name, "", name in INTERNAL, {}, None, error)


def _operations(
    port: CallingPort, image: Image, resource: AclResource, name: str
) -> frozenset[str]:
    return frozenset(one.value for one in ON[resource] if port.may(image, one, resource, name))


def reassignments(
    world: WorldState, partitions: Collection[TopicPartition] | None
) -> dict[TopicPartition, OngoingReassignment]:
    """ListPartitionReassignments; what does not exist or does not move is left out."""
    wanted = None if partitions is None else set(partitions)
    found = {}
    for key, part in world.image.partitions.items():
        place = TopicPartition(world.image.names[key.topic_id], key.number)
        if part.reassigning and (wanted is None or place in wanted):
            found[place] = OngoingReassignment(part.replicas, part.adding, part.removing)
    return dict(sorted(found.items()))


# -- what lies on disks ---------------------------------------------------------------------------


def log_dirs(
    model: KafkaModel, node: Node, partitions: Collection[TopicPartition] | None
) -> list[LogDir]:
    """DescribeLogDirs of one broker: also of topics that are hidden from the principal."""
    wanted = None if partitions is None else set(partitions)
    cordoned = model.brokers.cordoned(node)
    found = []
    for path, disk in node.disks.items():
        if not disk.online:
            failed = codes.error(codes.KAFKA_STORAGE_ERROR)
            found.append(LogDir(node.id, path, None, None, False, failed, {}))
            continue
        used = node.used(path)
        knows = node.spec.version >= (4, 3)
        found.append(
            LogDir(
                broker=node.id,
                path=path,
                total_bytes=int(disk.capacity),
                usable_bytes=int(max(disk.capacity - used, 0)),
                cordoned=path in cordoned if knows else None,
                error=None,
                replicas=_replicas(node, path, wanted),
            )
        )
    return found


def _replicas(
    node: Node, path: str, wanted: Collection[TopicPartition] | None
) -> dict[TopicPartition, ReplicaOnDisk]:
    found = {}
    for replica in node.replicas.values():
        place = TopicPartition(replica.topic, replica.key.number)
        if wanted is not None and place not in wanted:
            continue
        if replica.path == path:
            found[place] = ReplicaOnDisk(int(replica.log.size), 0, False)
        elif replica.future is not None and replica.future.path == path:
            log = replica.future.log
            lag = int(replica.log.end) - int(log.end)
            found[place] = ReplicaOnDisk(int(log.size), max(lag, 0), True)
    return found


def log_end(log: Log) -> float:
    """Log end offset."""
    return log.end


def local_log_start(log: Log) -> float:
    """Where the log on the broker's own disk begins."""
    return max(log.base, log.start)


def offsets(
    port: CallingPort, node: Node, replicas: Collection[ReplicaId], which: Offset
) -> dict[ReplicaId, int | BrokerError]:
    """ListOffsets of one broker's own replicas, leading or not."""
    found: dict[ReplicaId, int | BrokerError] = {}
    for one in replicas:
        replica = _listed(port, node, one.topic_partition)
        found[one] = int(which(replica.log)) if isinstance(replica, Replica) else replica
    return found


def high_watermarks(
    port: CallingPort, node: Node, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, HighWatermark | BrokerError]:
    """ListOffsets (LATEST) of a consumer: of what this broker leads, as far as it knows."""
    found: dict[TopicPartition, HighWatermark | BrokerError] = {}
    for one in partitions:
        replica = _listed(port, node, one, leads=True)
        if isinstance(replica, Replica):
            part = node.view.image.partitions[replica.key]
            found[one] = _high_watermark(port, replica, part)
        else:
            found[one] = replica
    return found


def _listed(
    port: CallingPort, node: Node, one: TopicPartition, *, leads: bool = False
) -> Replica | BrokerError:
    """The replica that a broker answers ListOffsets for, or why it does not."""
    image = node.view.image
    if not _describes(port, image, one.topic):
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED.error()
        return naming_right(refused, Call.LIST_OFFSETS, one.topic)
    key = PartitionKey(image.topics.get(one.topic, ""), one.partition)
    part, replica = image.partitions.get(key), node.replicas.get(key)
    if part is None:
        return codes.error(codes.UNKNOWN_TOPIC_OR_PARTITION)
    follows = replica is not None and (part.leader != node.id or replica.fetching_from is not None)
    if replica is None or (leads and follows):
        return codes.error(codes.NOT_LEADER_OR_FOLLOWER)
    if not node.hosts(replica):
        return codes.error(codes.KAFKA_STORAGE_ERROR)
    return replica


def _high_watermark(
    port: CallingPort, leader: Replica, part: Partition
) -> HighWatermark | BrokerError:
    """What all in-sync replicas have; never less than what this leader has shown before.

    Not known until they have all that the leader had when it became one (KIP-207).
    """
    nodes, log = port.world.nodes, leader.log
    others = [nodes[one].replicas.get(leader.key) for one in part.isr if one in nodes]
    reached = min([log.end, *(other.log.end for other in others if other is not None)])
    leader.high_watermark = min(log.end, max(reached, leader.high_watermark))
    begun = log.epochs[-1].offset if log.epochs else 0.0
    if leader.high_watermark < begun:
        return codes.error(codes.OFFSET_NOT_AVAILABLE)
    return HighWatermark(int(leader.high_watermark), part.leader_epoch)


def log_dirs_altered(
    port: CallingPort, node: Node, targets: Mapping[ReplicaId, str]
) -> dict[ReplicaId, BrokerError | None]:
    """AlterReplicaLogDirs at one broker: the verdict per replica."""
    if not port.may(node.view.image, Operation.ALTER, AclResource.CLUSTER):
        return dict.fromkeys(targets, ErrorCode.CLUSTER_AUTHORIZATION_FAILED.error())
    return {one: _move_log_dir(port, node, one, path) for one, path in targets.items()}


def _move_log_dir(port: CallingPort, node: Node, one: ReplicaId, path: str) -> BrokerError | None:
    image = node.view.image
    key = PartitionKey(image.topics.get(one.topic, ""), one.partition)
    disk = node.disks.get(path)
    replica = node.replicas.get(key)
    if disk is None:
        return codes.error(codes.LOG_DIR_NOT_FOUND)
    if not disk.online or (replica is not None and not node.hosts(replica)):
        return codes.error(codes.KAFKA_STORAGE_ERROR)
    if key not in image.partitions:
        return codes.error(codes.UNKNOWN_TOPIC_OR_PARTITION)
    if path in port.cordoned(node):
        return codes.error(codes.INVALID_REPLICA_ASSIGNMENT)
    if replica is None:
        node.preferred_dirs[key] = path
        return codes.error(codes.REPLICA_NOT_AVAILABLE)
    _begin_copy(replica, path)
    port.changed()
    return None


def _begin_copy(replica: Replica, path: str) -> None:
    """Back to where it is ends a copy; to where the copy goes changes nothing."""
    if path == replica.path:
        replica.future = None
    elif replica.future is None or replica.future.path != path:
        log = Log()
        log.begin_at(max(replica.log.base, replica.log.start))
        replica.future = FutureReplica(path, log)


# -- the rest -------------------------------------------------------------------------------------


def groups(port: CallingPort, node: Node) -> list[ConsumerGroup]:
    """ListGroups and OffsetFetch at one coordinator: groups that are hidden are left out."""
    image = node.view.image
    everywhere = port.may(image, Operation.DESCRIBE, AclResource.CLUSTER)
    found = []
    for group in port.world.groups:
        may = port.may(image, Operation.DESCRIBE, AclResource.GROUP, group.name)
        if group.coordinator != node.id or not (everywhere or may):
            continue
        if not may:
            refused = ErrorCode.GROUP_AUTHORIZATION_FAILED.error()
            error = naming_right(refused, Call.OFFSET_FETCH, group.name)
            group = replace(group, committed={}, error=error)
        visible = {
            part: offset
            for part, offset in group.committed.items()
            if _describes(port, image, part.topic)
        }
        found.append(replace(group, committed=visible))
    return found


def of_whole_request(error: ClusterError) -> BrokerError:
    """What the failure of a whole request says about each partition in it."""
    if isinstance(error, MissingRightError) and error.error is not None:
        return naming_right(error.error, Call.ALTER_REASSIGNMENTS)
    return ErrorCode.UNKNOWN_SERVER_ERROR.error(error.what)
