"""Proof from a fresh read: every partition is where the plan says, and as far as is known has its
data.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    HighWatermark,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.ledger_view import DataSeen
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.observation.agreed_topics import agreed_topics
from rehome.execution.observation.data_loss import later
from rehome.execution.observation.log_dir_copies import wanted_log_dirs
from rehome.execution.observation.out_of_isr import OutOfIsr, out_of_isr
from rehome.execution.throttle.keys import (
    THROTTLE_KEYS,
    own_value,
)
from rehome.ledger.store import Ledger


class ElsewhereKind(enum.StrEnum):
    """In what way a partition is not where the plan says."""

    UNREAD = "unread"
    IN_FLIGHT = "in_flight"
    REPLICAS = "replicas"
    IN_NO_LOG_DIR = "in_no_log_dir"
    LOG_DIR = "log_dir"


class GoneKind(enum.StrEnum):
    """What has become of a partition that is not there any more."""

    DELETED = "deleted"
    CREATED_AGAIN = "created_again"
    NO_PARTITION = "no_partition"


class UnknownData(enum.StrEnum):
    """Why it is not known whether messages are lost, where no broker has refused the read."""

    NOT_POLLED = "not_polled"
    NOT_READ = "not_read"
    OTHER_LEADER = "other_leader"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A partition that is not where the plan says; which values it has follows from its kind.

    :param error: why its topic cannot be read; None = the brokers do not agree on it.
    :param target: that is in flight, or wanted; ``replicas``: there now.
    :param broker: whose log dir is another; ``wanted_dir``: by the plan; ``found_dir``: now.
    """

    kind: ElsewhereKind
    error: BrokerError | None = None
    target: tuple[BrokerId, ...] = ()
    replicas: tuple[BrokerId, ...] = ()
    broker: BrokerId = -1
    wanted_dir: str = ""
    found_dir: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a fresh read shows of each partition of a plan.

    :param problems: partition → why it is not where the plan says; those not named are.
    :param gone: partition → why it is not there any more. It needs no moving, and is no problem.
    :param findings: partition → replicas that are outside the ISR. The partition is where the plan
        says all the same: Kafka has nothing of it in flight.
    :param throttles: replication throttles that are set on the plan's topics and brokers, by any
        client: "topic orders leader.replication.throttled.replicas=0:1".
    :param lost: partition → what was seen of it; messages that were there while it moved are lost.
    :param data_unknown: partition → why it is not known whether messages of it are lost.
    :param unread: whose configuration could not be read, and why: its throttles are not known.
    """

    plan_id: str
    partitions: int
    problems: Mapping[TopicPartition, Elsewhere]
    throttles: tuple[str, ...] = ()
    findings: Mapping[TopicPartition, tuple[OutOfIsr, ...]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    gone: Mapping[TopicPartition, GoneKind] = field(default_factory=dict)
    lost: Mapping[TopicPartition, DataSeen] = field(default_factory=dict)
    data_unknown: Mapping[TopicPartition, UnknownData | BrokerError] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every partition that is there is where the plan says, and none is known to have
        lost data.
        """
        return not self.problems and not self.lost


def verify(
    plan: Plan, cluster: OwnCluster, data: Mapping[TopicPartition, DataSeen] | None = None
) -> Verification:
    """Compare the plan with what is true now.

    A partition is where the plan says when nothing of it is in flight, its replicas are the
    target in the target's order, and replicas with a log dir of their own lie in it. A replica
    of the target that is outside the ISR is a finding: the controller has completed the move.
    The topics are asked of a broker that is known to be up to date.

    :param data: what polls have seen of the messages of what moved; None = nothing.
    :raises ClusterError: the cluster could not be read.
    """
    ongoing = cluster.list_reassignments()
    topics = agreed_topics(cluster, {move.partition.topic for move in plan.moves})
    live = cluster.describe_cluster().brokers.keys()
    wanted_dirs = {r: d for move in plan.moves for r, d in wanted_log_dirs(move).items()}
    dirs = _log_dirs(cluster, wanted_dirs)
    problems, findings, gone = {}, {}, {}
    for move in plan.moves:
        if why := _gone_kind(move, topics):
            gone[move.partition] = why
            continue
        problem = _placement_problem(move, topics, ongoing) or _log_dir_problem(move, dirs)
        if problem:
            problems[move.partition] = problem
        elif outsiders := out_of_isr(move, _state(move, topics), live):
            findings[move.partition] = outsiders
    throttles, unread = _throttles(plan, cluster)
    there = [move for move in plan.moves if move.partition not in gone]
    lost, unknown = _data(there, cluster, data or {}, topics)
    return Verification(
        plan.plan_id,
        len(plan.moves),
        problems,
        throttles,
        findings,
        unread,
        gone,
        lost,
        unknown,
    )


def record_losses(ledger: Ledger, verification: Verification) -> None:
    """An event for each partition of which messages are lost, unless there is one already."""
    events = ledger.events(verification.plan_id) if verification.lost else []
    details = {event.detail for event in events if event.kind is EventKind.DATA_LOST}
    for partition, data in sorted(verification.lost.items()):
        if (detail := f"{partition}: {data.lost_text}") not in details:
            ledger.add_event(EventKind.DATA_LOST, detail, plan_id=verification.plan_id)


def _data(
    moves: Collection[Move],
    cluster: ClusterPort,
    before: Mapping[TopicPartition, DataSeen],
    topics: Mapping[str, TopicDescription],
) -> tuple[dict[TopicPartition, DataSeen], dict[TopicPartition, UnknownData | BrokerError]]:
    """Partitions of which messages are lost, and those of which that is not known, each with
    what is known.
    """
    there = [move for move in moves if _is_there(move, topics)]
    leaders = {
        move.partition: leader
        for move in there
        if (leader := _state(move, topics).leader) is not None
    }
    now = cluster.high_watermarks(leaders)
    new = later(cluster, there, before, now.value)
    lost: dict[TopicPartition, DataSeen] = {}
    unknown: dict[TopicPartition, UnknownData | BrokerError] = {}
    for partition in (move.partition for move in moves):
        data_now = new.get(partition, before.get(partition, DataSeen()))
        watermark = now.value.get(partition, now.missing.get(leaders.get(partition, -1)))
        if data_now.lost:
            lost[partition] = data_now
        elif partition not in before or before[partition].high_watermark is None:
            unknown[partition] = UnknownData.NOT_POLLED
        elif watermark != data_now.high_watermark:
            unknown[partition] = _unread(watermark)
    return lost, unknown


def _unread(watermark: HighWatermark | BrokerError | None) -> UnknownData | BrokerError:
    if isinstance(watermark, BrokerError):
        return watermark
    return UnknownData.NOT_READ if watermark is None else UnknownData.OTHER_LEADER


def _is_there(move: Move, topics: Mapping[str, TopicDescription]) -> bool:
    """Whether the partition that was moved is among what was read."""
    topic = topics.get(move.partition.topic)
    if topic is None or topic.error is not None or not move.is_of(topic.topic_id):
        return False
    return move.partition.partition in topic.partitions


def _state(move: Move, topics: Mapping[str, TopicDescription]) -> PartitionState:
    return topics[move.partition.topic].partitions[move.partition.partition]


def _gone_kind(move: Move, topics: Mapping[str, TopicDescription]) -> GoneKind | None:
    """What has become of what is not there any more; None = it is, or that is not known."""
    topic = topics.get(move.partition.topic)
    if topic is None:
        return None
    if topic.error is not None:
        missing = topic.error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return GoneKind.DELETED if missing else None
    if not move.is_of(topic.topic_id):
        return GoneKind.CREATED_AGAIN
    return None if move.partition.partition in topic.partitions else GoneKind.NO_PARTITION


def _placement_problem(
    move: Move,
    topics: Mapping[str, TopicDescription],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
) -> Elsewhere | None:
    topic = topics.get(move.partition.topic)
    if topic is None or topic.error is not None:
        return Elsewhere(ElsewhereKind.UNREAD, topic.error if topic else None)
    state = topic.partitions[move.partition.partition]
    entry = ongoing.get(move.partition)
    if entry is not None:
        return Elsewhere(ElsewhereKind.IN_FLIGHT, target=entry.target)
    if state.replicas != move.target:
        return Elsewhere(ElsewhereKind.REPLICAS, target=move.target, replicas=state.replicas)
    return None


def _log_dir_problem(move: Move, dirs: Mapping[ReplicaId, str]) -> Elsewhere | None:
    for replica, path in wanted_log_dirs(move).items():
        actual_path = dirs.get(replica, "")
        if actual_path != path:
            kind = ElsewhereKind.LOG_DIR if actual_path else ElsewhereKind.IN_NO_LOG_DIR
            return Elsewhere(kind, broker=replica.broker, wanted_dir=path, found_dir=actual_path)
    return None


def _throttles(plan: Plan, cluster: ClusterPort) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is set on the plan's topics, its live brokers, and the brokers' default; and of which
    of them that could not be read.
    """
    live = cluster.describe_cluster().brokers
    brokers = {broker for move in plan.moves for broker in (*move.current, *move.target)}
    topics = {move.partition.topic for move in plan.moves}
    resources = [
        *map(ConfigResource.topic, sorted(topics)),
        ConfigResource.cluster_default(),
        *map(ConfigResource.broker, sorted(brokers & live.keys())),
    ]
    left, unread = [], []
    for resource, configs in cluster.describe_configs(resources, THROTTLE_KEYS).items():
        if isinstance(configs, BrokerError):
            unread.append(f"{resource} cannot be read: {configs}")
            continue
        for key in THROTTLE_KEYS:
            value = own_value(resource, configs.get(key))
            if value:
                left.append(f"{resource} {key}={value}")
    return tuple(left), tuple(unread)


def _log_dirs(cluster: ClusterPort, target_dirs: Mapping[ReplicaId, str]) -> dict[ReplicaId, str]:
    if not target_dirs:
        return {}
    brokers: set[BrokerId] = {replica.broker for replica in target_dirs}
    answer = cluster.describe_log_dirs(
        brokers, {replica.topic_partition for replica in target_dirs}
    )
    return {
        ReplicaId(*partition, log_dir.broker): log_dir.path
        for log_dir in answer.value
        for partition, replica in log_dir.replicas.items()
        if not replica.is_future
    }
