"""What a poll reads of a plan's partitions, and of the cluster they live on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rehome.domain.configs import ConfigResource
from rehome.domain.disks import Disk
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    HighWatermark,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicPartition,
)


@dataclass(frozen=True, slots=True)
class Observation:
    """One fresh reading of the partitions of a plan (and the cluster they live on).

    :param topics_missing: topics of the plan that no longer exist.
    :param unreadable: topics of the plan that the brokers do not describe, and why: what is true of
        their partitions is not known, but for ``ongoing``.
    :param topic_ids: Kafka's ids of those that do; "" where the brokers know none.
    :param partitions: metadata of the plan's partitions that exist.
    :param read: those whose metadata was read for this poll; of others, which wait for their turn,
        ``partitions`` holds what is assumed. None = all.
    :param ongoing: every reassignment in flight on the cluster, ours or not.
    :param live_brokers: brokers in a fresh metadata answer.
    :param sizes: bytes on disk per replica, where its broker answered.
    :param future_sizes: bytes of the copy that a log-dir move is filling, per replica.
    :param log_dirs: log dir per replica.
    :param future_log_dirs: log dir that a log-dir move is filling, per replica.
    :param future_lags: messages that a log-dir move's copy still lacks, per replica.
    :param log_end_offsets: per replica, from its own broker; a BrokerError where it refused.
    :param high_watermarks: of partitions that are in flight, or may start, from their leader; a
        BrokerError where it refused.
    :param missing: brokers that did not answer, and why.
    :param unconfirmed: partitions that the controller does not list as in flight, though they were
        admitted, and of which no broker is known to be up to date now.
    :param bystanders: metadata of partitions that are watched for strain, the plan's own among
        them; the log end offsets of their in-sync replicas are among the others.
    :param disks: log dirs that take new replicas, of brokers that a move of the plan is to
        bring a copy to; without those that do not report their sizes.
    :param unthrottled: partitions in flight whose throttle is not as it has to be.
    :param throttles_unread: resources whose throttle could not be read, and why.
    """

    taken_at: datetime
    partitions: Mapping[TopicPartition, PartitionState]
    ongoing: Mapping[TopicPartition, OngoingReassignment]
    live_brokers: frozenset[BrokerId]
    topics_missing: frozenset[str] = frozenset()
    unreadable: Mapping[str, BrokerError] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[ReplicaId, int] = field(default_factory=dict)
    future_sizes: Mapping[ReplicaId, int] = field(default_factory=dict)
    log_dirs: Mapping[ReplicaId, str] = field(default_factory=dict)
    future_log_dirs: Mapping[ReplicaId, str] = field(default_factory=dict)
    future_lags: Mapping[ReplicaId, int] = field(default_factory=dict)
    log_end_offsets: Mapping[ReplicaId, int | BrokerError] = field(default_factory=dict)
    high_watermarks: Mapping[TopicPartition, HighWatermark | BrokerError] = field(
        default_factory=dict
    )
    missing: Mapping[BrokerId, BrokerError] = field(default_factory=dict)
    disks: Mapping[BrokerId, tuple[Disk, ...]] = field(default_factory=dict)
    bystanders: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    read: frozenset[TopicPartition] | None = None
    unconfirmed: frozenset[TopicPartition] = frozenset()
    unthrottled: tuple[TopicPartition, ...] = ()
    throttles_unread: Mapping[ConfigResource, BrokerError] = field(default_factory=dict)
