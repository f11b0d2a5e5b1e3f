"""Kafka's metadata answer, read into the model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rehome.cluster.interface.errors import verdict
from rehome.cluster.interface.rights import Call, naming_right
from rehome.domain.kafka import (
    Broker,
    ClusterDescription,
    PartitionState,
    TopicDescription,
)

# AclOperation's codes, as "authorized operations" holds them (KIP-430).
OPERATIONS = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
}


def read_cluster(response: Any) -> ClusterDescription:
    """Brokers alive, and the caller's cluster rights."""
    return ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id if response.controller_id >= 0 else None,
        brokers={
            broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        },
        operations=_operations(response.authorized_operations),
    )


def read_topics(response: Any) -> dict[str, TopicDescription]:
    """Topics by name, in order of name; ``error`` where the broker refused one."""
    return {
        topic.name: TopicDescription(
            name=topic.name,
            topic_id=str(topic.topic_id or ""),
            internal=topic.is_internal,
            partitions={
                part.partition_index: PartitionState(
                    leader=part.leader_id if part.leader_id >= 0 else None,
                    replicas=tuple(part.replica_nodes),
                    isr=frozenset(part.isr_nodes),
                )
                for part in sorted(topic.partitions, key=lambda part: part.partition_index)
            },
            operations=_operations(topic.authorized_operations),
            error=naming_right(verdict(topic.error_code), Call.DESCRIBE_TOPICS, topic.name),
        )
        for topic in sorted(response.topics, key=lambda topic: topic.name)
    }


def _operations(codes: Collection[int] | None) -> frozenset[str] | None:
    if codes is None:
        return None
    return frozenset(OPERATIONS[code] for code in codes if code in OPERATIONS)
