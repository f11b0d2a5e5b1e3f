"""What the execution side sees, is told, and does: the vocabulary of `decide`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from include.cluster.port import ConfigResource
from include.domain.disks import Disk
from include.domain.kafka import (
    BrokerError,
    BrokerId,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicPartition,
)
from include.domain.request import OnWindowEnd
from include.domain.run.flows import FlowSample, RateChange, RateReason
from include.domain.run.pace import Pace
from include.settings import THROTTLE_EFFICIENCY

METADATA_GRACE_S = 10.0
"""See Policy."""


class PlanState(enum.StrEnum):
    """States of a plan: planned → approved → running ⇄ paused → one of the ended ones."""

    PLANNED = "planned"
    APPROVED = "approved"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    ROLLED_BACK = "rolled_back"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to a plan in this state."""
        return self in (
            PlanState.DONE,
            PlanState.CANCELLED,
            PlanState.ROLLED_BACK,
            PlanState.FAILED,
        )

    @property
    def active(self) -> bool:
        """Whether a plan in this state holds its cluster."""
        return self in (PlanState.RUNNING, PlanState.PAUSED)


class MoveState(enum.StrEnum):
    """States of a move: pending → admitted → one of the ended ones."""

    PENDING = "pending"
    ADMITTED = "admitted"  # journalled, and sent unless something came between
    DONE = "done"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"  # somebody else reassigned the partition
    FAILED = "failed"  # the controller refused it, or its topic is gone

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to a move in this state."""
        return self not in (MoveState.PENDING, MoveState.ADMITTED)


class Control(enum.StrEnum):
    """What `control_reassignment` can be asked to do."""

    PAUSE = "pause"
    RESUME = "resume"
    CHANGE_THROTTLE = "change_throttle"
    CANCEL = "cancel"
    ROLL_BACK = "roll_back"


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds and choices of one run. Bytes, seconds.

    :param rate_bytes_per_s: throttle per broker and direction.
    :param max_moves_per_broker: slots per broker and direction (source leader, destination).
    :param reaction_s: how long it may take until somebody looks and acts again. A move with less
        left than a slot's share of what the throttle copies in that time takes only that part
        of a slot (see ``slots.part_of_slot``); 0 = every move takes a whole one.
    :param max_partitions_in_flight: never more than this many at the controller.
    :param poll_interval_s: time between two polls of the progress trigger.
    :param stall_alert_s: nothing moved for this long: alert.
    :param stall_timeout_s: nothing moved for this long: cancel what is ours and fail. Waiting for
        somebody else's reassignment does not count.
    :param throttle_efficiency: part of the rate asked for that brokers deliver, governed.
    :param min_free_disk_fraction: part of a log dir that must stay free at every moment.
    :param min_rate_bytes_per_s: others' strain does not bring the throttle below this; 0 = a
        tenth of what was asked for.
    :param metadata_grace_s: for this long after a move was sent, a broker's metadata may still
        show the partition as it was before; until then nothing is concluded from that.
    """

    rate_bytes_per_s: int
    max_moves_per_broker: int = 4
    reaction_s: float = 0.0
    max_partitions_in_flight: int = 200
    poll_interval_s: float = 5.0
    stall_alert_s: float = 60.0
    stall_timeout_s: float = 600.0
    window_end: datetime | None = None
    on_window_end: OnWindowEnd = OnWindowEnd.DRAIN
    additional: bool = False
    throttle_efficiency: float = THROTTLE_EFFICIENCY
    min_free_disk_fraction: float = 0.0
    min_rate_bytes_per_s: int = 0
    metadata_grace_s: float = METADATA_GRACE_S

    def pace(self, rate_bytes_per_s: int) -> Pace:
        """How fast moves can be made, where brokers are to deliver this rate."""
        return Pace(
            bytes_per_s=rate_bytes_per_s * self.throttle_efficiency,
            reaction_s=self.reaction_s,
            max_moves_per_broker=self.max_moves_per_broker,
            max_partitions_in_flight=self.max_partitions_in_flight,
        )


@dataclass(frozen=True, slots=True)
class Observation:
    """One fresh look at the partitions of a plan (and the cluster they live on).

    :param topics_missing: topics of the plan that no longer exist.
    :param unreadable: topics of the plan that the brokers do not tell of, and why: what is true of
        their partitions is not known, but for ``ongoing``.
    :param topic_ids: Kafka's ids of those that do; "" where the brokers know none.
    :param partitions: metadata of the plan's partitions that exist.
    :param read: those whose metadata was read for this look; of others, which wait for their turn,
        ``partitions`` holds what is assumed. None = all.
    :param ongoing: every reassignment in flight on the cluster, ours or not.
    :param live_brokers: brokers in a fresh metadata answer.
    :param sizes: bytes on disk per replica, where its broker answered.
    :param future_sizes: bytes of the copy that a log-dir move is filling, per replica.
    :param log_dirs: log dir per replica.
    :param future_log_dirs: log dir that a log-dir move is filling, per replica.
    :param future_lags: messages that a log-dir move's copy still lacks, per replica.
    :param log_end_offsets: per replica, from its own broker; a BrokerError where it refused.
    :param missing: brokers that did not answer, and why.
    :param unconfirmed: partitions that the controller does not list as in flight, though they were
        admitted, and of which no broker is known to tell the truth now.
    :param bystanders: metadata of partitions that are watched for strain, the plan's own among
        them; the log end offsets of their in-sync replicas are among the others.
    :param disks: log dirs that take new replicas, of brokers that a move of the plan is to
        bring a copy to; without those that do not tell their sizes.
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
    missing: Mapping[BrokerId, BrokerError] = field(default_factory=dict)
    disks: Mapping[BrokerId, tuple[Disk, ...]] = field(default_factory=dict)
    bystanders: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    read: frozenset[TopicPartition] | None = None
    unconfirmed: frozenset[TopicPartition] = frozenset()
    unthrottled: tuple[TopicPartition, ...] = ()
    throttles_unread: Mapping[ConfigResource, BrokerError] = field(default_factory=dict)


class MoveSums(NamedTuple):
    """How many moves, and the bytes that they were to copy."""

    moves: int = 0
    bytes_to_copy: int = 0


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What the ledger knows of a plan, as plain data.

    :param moves: states of the moves that have not ended, and maybe of some that have.
    :param settled: by the state that they have ended in, the moves that ``moves`` leaves out.
    :param version: grows with every change of a move's state: see ``MoveStore.view``.
    :param last_progress_at: when bytes or messages last moved, by the samples.
    :param held_at: when somebody else's reassignment was last seen to hold all of it up.
    :param sent: admitted moves that the controller has accepted, and when.
    :param rate_bytes_per_s: throttle set now; None before the set-up.
    :param requested_rate_bytes_per_s: throttle an operator asked for in mid-run.
    :param rates: the newest changes of the rate, oldest first.
    :param flows: the newest samples of what brokers copy, oldest first.
    """

    state: PlanState
    moves: Mapping[TopicPartition, MoveState]
    last_progress_at: datetime | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    sent: Mapping[TopicPartition, datetime] = field(default_factory=dict)
    rate_bytes_per_s: int | None = None
    requested_rate_bytes_per_s: int | None = None
    rates: tuple[RateChange, ...] = ()
    flows: tuple[FlowSample, ...] = ()
    held_at: datetime | None = None
    settled: Mapping[MoveState, MoveSums] = field(default_factory=dict)
    version: int = 0

    @property
    def still_since(self) -> datetime | None:
        """Since when nothing has moved that might have; None = the plan has not started."""
        return max(filter(None, (self.last_progress_at, self.held_at)), default=None)

    @property
    def target_bytes_per_s(self) -> int | None:
        """What brokers are to deliver; of a rate that nobody governs, the rate. None = not set."""
        if self.rates and self.rates[-1].rate_bytes_per_s == self.rate_bytes_per_s:
            return self.rates[-1].target_bytes_per_s
        return self.rate_bytes_per_s


class ReplicaStanding(enum.StrEnum):
    """How a replica stands (KIP-179's Status column)."""

    IN_SYNC = "in_sync"
    BEHIND = "behind"
    UNKNOWN_TOPIC = "unknown_topic"
    UNREADABLE = "unreadable"  # the brokers do not tell of its topic
    UNKNOWN_PARTITION = "unknown_partition"
    UNKNOWN_BROKER = "unknown_broker"
    NOT_HOSTED = "not_hosted"  # the broker does not host this partition (yet)


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """KIP-179's ReplicaStatus of one replica, with bytes. None where nobody could say.

    :param status_at: when this was seen.
    :param last_in_isr_at: when the replica was last seen in the ISR; None = not yet.
    :param messages_behind: leader's log end offset less this replica's own.
    :param max_messages_behind: the largest ``messages_behind`` seen since the move began.
    :param bytes_behind: leader's size less this replica's (log-dir move: the current log's
        size less the future one's).
    """

    replica: ReplicaId
    standing: ReplicaStanding
    status_at: datetime
    last_in_isr_at: datetime | None = None
    messages_behind: int | None = None
    max_messages_behind: int | None = None
    bytes_behind: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """How far a plan is at one moment.

    :param messages_behind: over all replicas in flight that could be asked.
    :param rate_bytes_per_s: of the whole plan, measured over the last samples; None before there
        are two.
    :param eta_s: time left until the last copy is complete (see ``eta``); None while nothing
        comes through.
    :param busiest_bytes: bytes left at the broker and direction where most are left.
    """

    sampled_at: datetime
    bytes_done: int
    bytes_total: int
    moves_done: int
    moves_total: int
    in_flight: int
    messages_behind: int = 0
    rate_bytes_per_s: float | None = None
    eta_s: float | None = None
    busiest_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """Send these moves to the controller, in one request."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Settle:
    """Record what the observation shows became of a move."""

    partition: TopicPartition
    state: MoveState
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel these moves, which are ours: in flight, or journalled and never sent.

    :param then: what becomes of them: PENDING where they are to be taken up again.
    """

    partitions: tuple[TopicPartition, ...]
    cause: str
    then: MoveState = MoveState.CANCELLED


@dataclass(frozen=True, slots=True)
class PlaceReplicas:
    """Have these replicas, which exist, moved into the log dirs that the plan names."""

    log_dirs: tuple[tuple[ReplicaId, str], ...]


@dataclass(frozen=True, slots=True)
class SetRate:
    """Change the throttle's nominal rate: see ``RateChange``. None: the same as the rate."""

    rate_bytes_per_s: int
    cause: str
    reason: RateReason = RateReason.REQUESTED
    target_bytes_per_s: int | None = None
    limit_bytes_per_s: int | None = None
    delivered_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class KeepThrottled:
    """These are in flight, and what throttles them has to be set again."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Admit nothing now, for this reason."""

    cause: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The plan has ended in this state."""

    state: PlanState
    cause: str


Action = Admit | Settle | Cancel | PlaceReplicas | SetRate | KeepThrottled | Hold | Finish
