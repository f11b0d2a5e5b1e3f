"""A plan: moves with reasons, its hash, Kafka's JSON and the way back."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from include.cluster.model import BrokerId, TopicPartition

ANY_LOG_DIR = "any"


class MoveReason(enum.StrEnum):
    """Why a partition's replica set changes."""

    DRAIN = "drain"  # a replica sat on a broker to be emptied
    BALANCE = "balance"  # an overloaded broker sheds, an underloaded one receives
    RACK = "rack"  # replicas were not spread over the rack tree as evenly as it allows
    REPLICATION_FACTOR = "replication_factor"
    REQUESTED = "requested"  # named in the operator's own reassignment JSON
    LOG_DIR = "log_dir"  # within a broker, between its log dirs
    LEADER = "leader"  # only the order of replicas changes: no data moves
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's change of replica set. Sizes in bytes, brokers by id.

    :param current: replicas in stored order when planned, preferred leader first.
    :param target: replicas wanted, preferred leader first.
    :param size_bytes: size of one replica (the leader's, or the largest known).
    :param current_log_dirs: log dir of each current replica, aligned with ``current``.
    :param target_log_dirs: log dir wanted for each target replica, aligned with ``target``;
        ``any`` lets the broker choose. Empty means ``any`` for all.
    :param why: one sentence for a person.
    """

    partition: TopicPartition
    current: tuple[BrokerId, ...]
    target: tuple[BrokerId, ...]
    size_bytes: int
    reason: MoveReason
    why: str = ""
    current_log_dirs: tuple[str, ...] = ()
    target_log_dirs: tuple[str, ...] = ()

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        """Brokers that receive a copy, in target order."""
        return tuple(broker for broker in self.target if broker not in self.current)

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        """Brokers that give their copy up, in current order."""
        return tuple(broker for broker in self.current if broker not in self.target)

    @property
    def bytes_to_move(self) -> int:
        """Bytes that cross the network: one replica's size per added broker."""
        return self.size_bytes * len(self.adding)


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker holds before and after the plan."""

    broker: BrokerId
    size_bytes_before: int
    size_bytes_after: int
    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    bytes_in: int  # bytes the plan copies to it
    bytes_out: int  # bytes the plan copies from it, as leader


@dataclass(frozen=True, slots=True)
class Infeasible:
    """A target that cannot be met, the constraint that forbids it, and what was aimed at instead."""

    subject: str
    constraint: str
    wanted: float
    nearest: float


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What an approver reads; ``summary.json``. Bytes and seconds.

    :param lower_bound_bytes: no plan that reaches the same state moves fewer bytes than this.
    :param predicted_s: time the move takes at ``rate_bytes_per_s`` (measured throttle
        efficiency included); None where the rate is not known yet.
    """

    plan_id: str
    plan_hash: str
    cluster_id: str
    action: str
    snapshot: str
    partitions: int
    replica_moves: int
    leader_changes: int
    bytes_to_move: int
    lower_bound_bytes: int
    rate_bytes_per_s: int | None
    predicted_s: float | None
    rack_violations_before: int
    rack_violations_after: int
    brokers: tuple[BrokerLoad, ...]
    infeasible: tuple[Infeasible, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Moves in partition order, and what is known about them.

    :param allow_replication_factor_change: only true when the action is to change it.
    """

    plan_id: str
    cluster_id: str
    action: str
    moves: tuple[Move, ...]
    summary: PlanSummary
    allow_replication_factor_change: bool = False
    by_partition: Mapping[TopicPartition, Move] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_partition", {move.partition: move for move in self.moves})

    @property
    def plan_hash(self) -> str:
        """SHA-256 over cluster, moves and their targets; what an approval is bound to."""
        return self.summary.plan_hash
