"""The reassignment in a file of Kafka's tool, followed of any client (KIP-179)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import Replicas, TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.run.progress import ReplicaStatus
from rehome.execution.observation.observe import observe
from rehome.execution.progress.progress import replica_statuses


def moves_of_file(
    cluster: ClusterPort, file: Mapping[TopicPartition, Replicas]
) -> tuple[Move, ...]:
    """What a file asks for, as moves from the replicas of now. Sizes are not known: they are 0.

    :raises ClusterError: the cluster did not answer.
    """
    topics = cluster.describe_topics({partition.topic for partition in file})

    def now(partition: TopicPartition) -> Replicas:
        topic = topics.get(partition.topic)
        state = None if topic is None else topic.partitions.get(partition.partition)
        return () if state is None else state.replicas

    return tuple(
        Move(partition, now(partition), target, 0, MoveReason.REQUESTED)
        for partition, target in sorted(file.items())
    )


def file_statuses(
    cluster: ClusterPort, file: Mapping[TopicPartition, Replicas], now: datetime
) -> list[ReplicaStatus]:
    """The state of each replica that a file names, as it is now.

    :raises ClusterError: the cluster did not answer.
    """
    moves = moves_of_file(cluster, file)
    return replica_statuses(moves, observe(cluster, moves, now))
