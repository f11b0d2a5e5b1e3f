"""The controller's verdict on a reassignment, predicted: AlterPartitionReassignments has no
validate-only: it commits what it accepts.

Codes, messages and their order follow org.apache.kafka.controller.ReplicationControlManager
(4.3); test_controller_rules_on_brokers.py compares them with a real controller. It does not look
at racks, at min.insync.replicas, at whether a broker is alive, or at cordoned log dirs (KIP-1066
keeps only new topics and partitions off those): the dry run judges these by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    ClusterDescription,
    OngoingReassignment,
    PartitionState,
    TopicDescription,
    TopicPartition,
)


@dataclass(frozen=True, slots=True)
class ControllerFacts:
    """What the controller decides by.

    :param registered: brokers it knows, alive or not: a dead one is accepted as a target.
    :param unclean_election_topics: topics with ``unclean.leader.election.enable``.
    """

    topics: Mapping[str, TopicDescription]
    registered: frozenset[BrokerId]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    unclean_election_topics: frozenset[str] = frozenset()
    allow_replication_factor_change: bool = False


def facts_of(
    cluster: ClusterDescription,
    topics: Mapping[str, TopicDescription],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    *,
    allow_replication_factor_change: bool,
) -> ControllerFacts:
    """The facts, as far as clients can see them.

    Metadata lists live brokers only; a dead one is known to be registered where it still holds
    replicas. One that is dead and holds none is taken for unregistered.
    """
    hosting = {
        broker
        for topic in topics.values()
        for state in topic.partitions.values()
        for broker in state.replicas
    }
    return ControllerFacts(
        topics=topics,
        registered=frozenset(cluster.brokers) | hosting,
        ongoing=ongoing,
        allow_replication_factor_change=allow_replication_factor_change,
    )


def predict(
    targets: Mapping[TopicPartition, Sequence[BrokerId] | None], facts: ControllerFacts
) -> dict[TopicPartition, BrokerError | None]:
    """The verdict per partition; None where the controller would accept. Pure.

    :param targets: replicas wanted; None = cancel.
    """
    return {partition: _verdict(partition, target, facts) for partition, target in targets.items()}


def _verdict(
    partition: TopicPartition, target: Sequence[BrokerId] | None, facts: ControllerFacts
) -> BrokerError | None:
    topic = facts.topics.get(partition.topic)
    if topic is None or (
        topic.error is not None and topic.error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ):
        return _unknown_error(f"Unable to find a topic named {partition.topic}.")
    if topic.error is not None:
        return topic.error  # hidden from this principal: what the controller sees is not known
    state = topic.partitions.get(partition.partition)
    if state is None:
        return _unknown_error(f"Unable to find partition {partition.topic}:{partition.partition}.")
    entry = facts.ongoing.get(partition)
    if target is None:
        return _cancel_verdict(partition, state, entry, facts)
    return _assignment_verdict(target, facts) or _factor_verdict(state, entry, target, facts)


def _unknown_error(message: str) -> BrokerError:
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.error(message)


def _cancel_verdict(
    partition: TopicPartition,
    state: PartitionState,
    entry: OngoingReassignment | None,
    facts: ControllerFacts,
) -> BrokerError | None:
    if entry is None:
        # The controller leaves a message out where it would only repeat the code's own.
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS.error()
    in_sync_afterwards = state.isr - set(entry.adding)
    if in_sync_afterwards or partition.topic in facts.unclean_election_topics:
        return None
    where = f"{partition.topic}:{partition.partition}"
    return BrokerError(
        39,
        "INVALID_REPLICA_ASSIGNMENT",
        f"Unable to revert partition assignment for {where} because it would require an "
        "unclean leader election.",
    )


def _assignment_verdict(target: Sequence[BrokerId], facts: ControllerFacts) -> BrokerError | None:
    if not target:
        return _invalid("includes an empty replica list.")
    previous = None
    for broker in sorted(target):  # the controller goes through them in this order
        if broker not in facts.registered:
            return _invalid(f"includes broker {broker}, but no such broker is registered.")
        if broker == previous:
            return _invalid(f"includes the broker {broker} more than once.")
        previous = broker
    return None


def _invalid(what: str) -> BrokerError:
    message = f"The manual partition assignment {what}"
    return ErrorCode.INVALID_REPLICA_ASSIGNMENT.error(message)


def _factor_verdict(
    state: PartitionState,
    entry: OngoingReassignment | None,
    target: Sequence[BrokerId],
    facts: ControllerFacts,
) -> BrokerError | None:
    if facts.allow_replication_factor_change:
        return None
    current = replica_count(state, entry)
    if len(target) == current:
        return None
    return BrokerError(
        38,
        "INVALID_REPLICATION_FACTOR",
        f"The replication factor is changed from {current} to {len(target)}",
    )


def replica_count(state: PartitionState, entry: OngoingReassignment | None) -> int:
    """How many replicas count as a partition's: in flight, what its reassignment will leave."""
    return len(entry.target if entry else state.replicas)
