"""What the execution side sees, is told, and does: the vocabulary of `decide`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from include.cluster.model import (
    BrokerError,
    BrokerId,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicPartition,
)
from include.planning.request import OnWindowEnd


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
    ADMITTED = "admitted"  # journalled; sent, or about to be
    DONE = "done"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"  # somebody else reassigned the partition
    FAILED = "failed"  # the controller refused it, or its topic is gone

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to a move in this state."""
        return self not in (MoveState.PENDING, MoveState.ADMITTED)


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds and choices of one run. Bytes, seconds.

    :param rate_bytes_per_s: throttle per broker and direction.
    :param max_moves_per_broker: slots per broker and direction (source leader, destination).
    :param max_partitions_in_flight: never more than this many at the controller.
    :param poll_interval_s: time between two polls of the progress trigger.
    :param stall_alert_s: nothing moved for this long: alert.
    :param stall_timeout_s: nothing moved for this long: cancel what is ours and fail.
    """

    rate_bytes_per_s: int
    max_moves_per_broker: int = 4
    max_partitions_in_flight: int = 200
    poll_interval_s: float = 5.0
    stall_alert_s: float = 60.0
    stall_timeout_s: float = 600.0
    window_end: datetime | None = None
    on_window_end: OnWindowEnd = OnWindowEnd.DRAIN
    additional: bool = False
    allow_replication_factor_change: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """One fresh look at the partitions of a plan (and the cluster they live on).

    :param topics_missing: topics of the plan that no longer exist.
    :param partitions: metadata of the plan's partitions that exist.
    :param ongoing: every reassignment in flight on the cluster, ours or not.
    :param live_brokers: brokers in a fresh metadata answer.
    :param sizes: bytes on disk per replica, where its broker answered.
    :param log_end_offsets: per replica, from its own broker; a BrokerError where it refused.
    :param missing: brokers that did not answer, and why.
    """

    taken_at: datetime
    partitions: Mapping[TopicPartition, PartitionState]
    ongoing: Mapping[TopicPartition, OngoingReassignment]
    live_brokers: frozenset[BrokerId]
    topics_missing: frozenset[str] = frozenset()
    sizes: Mapping[ReplicaId, int] = field(default_factory=dict)
    future_sizes: Mapping[ReplicaId, int] = field(default_factory=dict)
    log_dirs: Mapping[ReplicaId, str] = field(default_factory=dict)
    log_end_offsets: Mapping[ReplicaId, int | BrokerError] = field(default_factory=dict)
    missing: Mapping[BrokerId, BrokerError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What the ledger knows of a plan, as plain data.

    :param last_progress_at: when bytes or messages last moved, by the samples.
    """

    state: PlanState
    moves: Mapping[TopicPartition, MoveState]
    last_progress_at: datetime | None = None
    cancel_requested: bool = False
    pause_requested: bool = False


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
    """Cancel these moves, which are ours and in flight."""

    partitions: tuple[TopicPartition, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class SetRate:
    """Change the throttle's nominal rate."""

    rate_bytes_per_s: int
    cause: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Admit nothing now, for this reason."""

    cause: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The plan has ended in this state."""

    state: PlanState
    cause: str


Action = Admit | Settle | Cancel | SetRate | Hold | Finish
