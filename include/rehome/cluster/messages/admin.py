"""Kafka's admin messages: requests built from the model, answers read back into it. No I/O.

Only what librdkafka cannot say is here: reassignments (KIP-455, with KIP-860's switch for the
replication factor), log dirs (KIP-113, KIP-827), log end offsets of single replicas, the
cluster's features (KIP-584) and its metadata quorum (KIP-595).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest

from rehome.cluster.interface.errors import broker_error, verdict
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    LogDir,
    OngoingReassignment,
    ReplicaId,
    ReplicaOnDisk,
    SupportedVersions,
    TopicPartition,
)

# ListOffsets as a debugging replica: the answer is of this broker's own log, leader or not.
DEBUGGING_REPLICA = -2
LATEST = -1
EARLIEST = -2
EARLIEST_LOCAL = -4  # of what is still on the broker's own disk (KIP-405), since version 8


def partitions_by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Partition numbers per topic, both in ascending order."""
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(set(partitions)):
        grouped[topic].append(partition)
    return grouped


def features_request() -> Any:
    """ApiVersions in the versions that return features (KIP-584); from Kafka 2.7 on they do."""
    return ApiVersionsRequest(
        client_software_name="rehome", client_software_version="1", min_version=3
    )


def read_finalized_features(response: Any) -> dict[str, int]:
    """Level of each feature the whole cluster has agreed on; {} where the broker knows of none."""
    return {
        feature.name: feature.max_version_level for feature in response.finalized_features or ()
    }


def read_supported_versions(response: Any) -> SupportedVersions:
    """What the broker that answers can."""
    return SupportedVersions(
        {request.api_key: request.max_version for request in response.api_keys},
        {feature.name: feature.max_version for feature in response.supported_features or ()},
    )


@dataclass(frozen=True, slots=True)
class Quorum:
    """How far the metadata log is written, and read by each node, as the controller knows it.

    :param committed: offset below which everything is committed.
    :param read_to: log end offset per node, brokers and controllers alike; -1 = not known.
    """

    committed: int
    read_to: Mapping[BrokerId, int]


def describe_quorum_request() -> Any:
    """DescribeQuorum of the one partition that holds the cluster's metadata."""
    topic_type = DescribeQuorumRequest.TopicData
    partition = topic_type.PartitionData(partition_index=0)
    return DescribeQuorumRequest(
        topics=[topic_type(topic_name="__cluster_metadata", partitions=[partition])]
    )


def quorum_error(response: Any) -> int:
    """The code with which its only partition was refused; 0 = it was not."""
    (topic,) = response.topics
    (partition,) = topic.partitions
    return int(partition.error_code)


def read_quorum(response: Any) -> Quorum:
    """Voters and observers: in combined mode a broker is a voter."""
    (topic,) = response.topics
    (partition,) = topic.partitions
    nodes = (*partition.current_voters, *partition.observers)
    return Quorum(
        partition.high_watermark, {node.replica_id: node.log_end_offset for node in nodes}
    )


def alter_reassignments_request(
    targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
    *,
    allow_replication_factor_change: bool,
    timeout_ms: int,
) -> Any:
    """AlterPartitionReassignments; None cancels. Brokers before 4.1 ignore the switch."""
    grouped: dict[str, list[Any]] = defaultdict(list)
    topic_type = AlterPartitionReassignmentsRequest.ReassignableTopic
    for partition, replicas in targets.items():
        grouped[partition.topic].append(
            topic_type.ReassignablePartition(
                partition_index=partition.partition,
                replicas=None if replicas is None else list(replicas),
            )
        )
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=allow_replication_factor_change,
        topics=[topic_type(name=name, partitions=parts) for name, parts in grouped.items()],
    )


def read_alter_reassignments(response: Any) -> dict[TopicPartition, BrokerError | None]:
    """The controller's verdict per partition, with its own message."""
    return {
        TopicPartition(topic.name, part.partition_index): verdict(
            part.error_code, part.error_message
        )
        for topic in response.responses
        for part in topic.partitions
    }


def list_reassignments_request(
    partitions: Collection[TopicPartition] | None, timeout_ms: int
) -> Any:
    """ListPartitionReassignments; None lists all."""
    topic_type = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    topics = None
    if partitions is not None:
        topics = [
            topic_type(name=name, partition_indexes=indexes)
            for name, indexes in partitions_by_topic(partitions).items()
        ]
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)


def read_list_reassignments(response: Any) -> dict[TopicPartition, OngoingReassignment]:
    """What is in flight."""
    return {
        TopicPartition(topic.name, part.partition_index): OngoingReassignment(
            replicas=tuple(part.replicas),
            adding=tuple(part.adding_replicas),
            removing=tuple(part.removing_replicas),
        )
        for topic in response.topics
        for part in topic.partitions
    }


def describe_log_dirs_request(partitions: Collection[TopicPartition] | None) -> Any:
    """DescribeLogDirs; None asks for every replica, also of topics hidden from this principal."""
    topic_type = DescribeLogDirsRequest.DescribableLogDirTopic
    topics = None
    if partitions is not None:
        topics = [
            topic_type(topic=name, partitions=indexes)
            for name, indexes in partitions_by_topic(partitions).items()
        ]
    return DescribeLogDirsRequest(topics=topics)


def read_log_dirs(broker: BrokerId, response: Any) -> list[LogDir]:
    """One broker's log dirs. Space since Kafka 3.3 (v4), cordoned since 4.3 (v5)."""
    version = response.API_VERSION
    return [
        LogDir(
            broker=broker,
            path=result.log_dir,
            total_bytes=_known_bytes(result.total_bytes) if version >= 4 else None,
            usable_bytes=_known_bytes(result.usable_bytes) if version >= 4 else None,
            cordoned=bool(result.is_cordoned) if version >= 5 else None,
            error=verdict(result.error_code),
            replicas={
                TopicPartition(topic.name, part.partition_index): ReplicaOnDisk(
                    part.partition_size, part.offset_lag, part.is_future_key
                )
                for topic in result.topics
                for part in topic.partitions
            },
        )
        for result in response.results
    ]


def _known_bytes(value: int) -> int | None:
    return value if value >= 0 else None


def alter_log_dirs_requests(targets: Mapping[ReplicaId, str]) -> dict[BrokerId, Any]:
    """AlterReplicaLogDirs, one request per broker that hosts replicas to move."""
    dir_type = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    grouped: dict[BrokerId, dict[str, list[TopicPartition]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for replica, path in targets.items():
        grouped[replica.broker][path].append(replica.topic_partition)
    return {
        broker: AlterReplicaLogDirsRequest(
            dirs=[
                dir_type(
                    path=path,
                    topics=[
                        dir_type.AlterReplicaLogDirTopic(name=name, partitions=indexes)
                        for name, indexes in partitions_by_topic(partitions).items()
                    ],
                )
                for path, partitions in paths.items()
            ]
        )
        for broker, paths in grouped.items()
    }


def read_alter_log_dirs(broker: BrokerId, response: Any) -> dict[ReplicaId, BrokerError | None]:
    """One broker's verdict per replica."""
    return {
        ReplicaId(topic.topic_name, part.partition_index, broker): verdict(part.error_code)
        for topic in response.results
        for part in topic.partitions
    }


def list_offsets_requests(
    replicas: Collection[ReplicaId], timestamp: int, timeout_ms: int
) -> dict[BrokerId, Any]:
    """ListOffsets that every replica answers for itself: one request per broker.

    :param timestamp: :data:`LATEST` for log ends, :data:`EARLIEST` or :data:`EARLIEST_LOCAL`
        for log starts.
    """
    options = {"min_version": 8} if timestamp == EARLIEST_LOCAL else {}
    by_broker: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for replica in replicas:
        by_broker[replica.broker].append(replica.topic_partition)
    return {
        broker: list_offsets_request(
            partitions, timestamp, timeout_ms, DEBUGGING_REPLICA, **options
        )
        for broker, partitions in by_broker.items()
    }


def list_offsets_request(
    partitions: Collection[TopicPartition],
    timestamp: int,
    timeout_ms: int,
    replica_id: int,
    **versions: int,
) -> Any:
    """ListOffsets of these partitions, as a replica, or a consumer (-1), asks.

    :param versions: ``min_version`` and ``max_version`` of the message.
    """
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=0,
        topics=[
            topic_type(
                name=name,
                partitions=[
                    topic_type.ListOffsetsPartition(
                        partition_index=index, current_leader_epoch=-1, timestamp=timestamp
                    )
                    for index in indexes
                ],
            )
            for name, indexes in partitions_by_topic(partitions).items()
        ],
        timeout_ms=timeout_ms,
        **versions,
    )


def read_list_offsets(broker: BrokerId, response: Any) -> dict[ReplicaId, int | BrokerError]:
    """Offsets of one broker's replicas; NOT_LEADER_OR_FOLLOWER where it hosts none."""
    return {
        ReplicaId(topic.name, part.partition_index, broker): (
            broker_error(part.error_code) if part.error_code else part.offset
        )
        for topic in response.topics
        for part in topic.partitions
    }
