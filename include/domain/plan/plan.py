"""A plan: moves with reasons, its hash, Kafka's JSON and the way back."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from include.domain.kafka import BrokerId, TopicPartition
from include.domain.plan.figures import (
    Link,
    ResourceBalance,
    TargetPrice,
    TopicBalance,
    balance_from_json,
)
from include.domain.plan.infeasible import Infeasible, infeasible_from_json
from include.domain.plan.move_columns import ANY_LOG_DIR as ANY_LOG_DIR
from include.domain.plan.move_columns import AT_ONCE, padded
from include.domain.plan.moves_by_partition import MovesByPartition

MOVES = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("current", pa.list_(pa.int32()), nullable=False),  # preferred leader first
        pa.field("target", pa.list_(pa.int32()), nullable=False),  # preferred leader first
        pa.field("size_bytes", pa.int64(), nullable=False),  # of one replica
        pa.field("reason", pa.string(), nullable=False),  # a MoveReason
        pa.field("why", pa.string(), nullable=False),
        pa.field("current_log_dirs", pa.list_(pa.string()), nullable=False),  # as `current`, or []
        pa.field("target_log_dirs", pa.list_(pa.string()), nullable=False),  # as `target`, or []
        pa.field("topic_id", pa.string(), nullable=False),  # "" = not known
        pa.field("in_sync", pa.int32(), nullable=False),  # replicas when planned; -1 = not known
    ]
)
"""``moves.parquet``: one row per move, sorted by topic and partition."""


class MoveReason(enum.StrEnum):
    """Why a partition's replica set changes."""

    DRAIN = "drain"  # a replica sat on a broker to be emptied
    OFFLINE = "offline"  # a replica sat on a dead broker, or in a failed log dir
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
    :param topic_id: Kafka's id of the topic that was planned on (KIP-516); "" = not known.
    :param in_sync: replicas that were in the ISR when it was planned; -1 = not known.
    """

    partition: TopicPartition
    current: tuple[BrokerId, ...]
    target: tuple[BrokerId, ...]
    size_bytes: int
    reason: MoveReason
    why: str = ""
    current_log_dirs: tuple[str, ...] = ()
    target_log_dirs: tuple[str, ...] = ()
    topic_id: str = ""
    in_sync: int = -1

    @property
    def danger(self) -> int | None:
        """What the order of its start goes by where replicas are offline: replicas in sync, the
        fewest first; None = it has no such order.
        """
        return self.in_sync if self.reason is MoveReason.OFFLINE else None

    def is_of(self, topic_id: str) -> bool:
        """Whether a topic of this name and id is the one that was planned on.

        A name alone does not tell: a topic may have been deleted and created again. Brokers
        before 2.8, and plans stored without ids, know none: then the name has to do.
        """
        return not self.topic_id or not topic_id or self.topic_id == topic_id

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        """Brokers that receive a copy, in target order."""
        current = self.current
        return tuple([broker for broker in self.target if broker not in current])

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        """Brokers that give their copy up, in current order."""
        return tuple(broker for broker in self.current if broker not in self.target)

    @property
    def relocating(self) -> tuple[BrokerId, ...]:
        """Brokers that keep their replica and copy it to another log dir of theirs."""
        before = dict(zip(self.current, self.current_log_dirs, strict=False))
        return tuple(
            broker
            for broker, path in zip(self.target, self.target_log_dirs, strict=False)
            if path != ANY_LOG_DIR and broker in self.current and before.get(broker) != path
        )

    @property
    def bytes_to_move(self) -> int:
        """Bytes that cross the network: one replica's size per added broker."""
        return self.size_bytes * len(self.adding)

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that are written anew: over the network or between log dirs."""
        return self.size_bytes * (len(self.adding) + len(self.relocating))


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker holds before and after the plan.

    Sizes count each replica with its partition's size; leaders are preferred leaders, which
    is what the plan decides.
    """

    broker: BrokerId
    size_bytes_before: int
    size_bytes_after: int
    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    bytes_in: int  # bytes the plan copies to it
    bytes_out: int  # bytes the plan copies from it, as leader
    log_dir_bytes: int = 0  # bytes the plan copies between its log dirs


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What an approver reads; ``summary.json``. Bytes and seconds.

    :param lower_bound_bytes: no plan that reaches the same state moves fewer bytes than this.
    :param predicted_s: time that the busiest broker's copies take at ``rate_bytes_per_s``, and a
        last look: about the least time; None where the rate is not known yet. The dry run predicts
        a range.
    :param asked_bound_bytes: no plan that does all that was asked moves fewer bytes; None where no
        budget cut this one off.
    :param ratio_to_bound: bytes copied over the lower bound, within brokers, too; of a plan that a
        budget cut off, over the bound of what was asked, which may be below 1; None where the
        bound is 0 and something moves.
    :param makespan_bound_s: no execution at that rate is faster: some broker has to receive, or
        as a leader send, that much.
    :param bytes_across_racks: bytes copied between branches of the rack tree's top level.
    :param planned_by: which loads the plan was made by, and why not by others; a sentence.
    :param resources: before, after and band of each broker; prices: what each target costs.
    :param links: bytes from rack to rack, largest first.
    :param min_free_disk_fraction: part of each log dir that was to stay free.
    :param log_dir_moves: replicas that stay on their broker and move between its log dirs;
        ``log_dir_bytes`` copies them, and no way to balance the log dirs as well copies less than
        ``log_dir_bound_bytes``. None of this crosses the network, or counts in ``bytes_to_move``.
    :param ledger_id: of the ledger that it is made to be recorded in; "" = it is planned by hand.
    :param files: name of each of Kafka's files → SHA-256 of the bytes that the gate checks.
    :param topics: how evenly topics are spread; None where the plan does not go by that.
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
    ratio_to_bound: float | None = None
    makespan_bound_s: float | None = None
    bytes_across_racks: int = 0
    planned_by: str = ""
    resources: tuple[ResourceBalance, ...] = ()
    prices: tuple[TargetPrice, ...] = ()
    links: tuple[Link, ...] = ()
    min_free_disk_fraction: float = 0.0
    log_dir_moves: int = 0
    log_dir_bytes: int = 0
    log_dir_bound_bytes: int = 0
    ledger_id: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    topics: TopicBalance | None = None
    asked_bound_bytes: int | None = None

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that are written anew: over the network or between log dirs."""
        return self.bytes_to_move + self.log_dir_bytes


@dataclass(frozen=True)
class Plan:
    """Moves in partition order, and what is known about them.

    :param allow_replication_factor_change: only true when the action is to change it.
    """

    plan_id: str
    cluster_id: str
    action: str
    moves: Sequence[Move]
    summary: PlanSummary
    allow_replication_factor_change: bool = False

    @cached_property
    def by_partition(self) -> Mapping[TopicPartition, Move]:
        """Partition → its move; of moves in columns, made when it is looked at."""
        if isinstance(self.moves, MoveTable):
            return self.moves.by_partition
        return {move.partition: move for move in self.moves}

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        """Have the moves of these partitions made at once, where they are in columns."""
        if isinstance(self.by_partition, MovesByPartition):
            self.by_partition.prepare(partitions)

    @cached_property
    def brokers(self) -> frozenset[BrokerId]:
        """Every broker that a replica is moved from or to, or stays on."""
        if isinstance(self.moves, MoveTable):
            return self.moves.brokers
        return frozenset(b for move in self.moves for b in (*move.current, *move.target))

    @cached_property
    def bytes_to_copy(self) -> int:
        """Bytes that all of its moves write anew, between brokers and between log dirs."""
        if isinstance(self.moves, MoveTable):
            return self.moves.bytes_to_copy
        return sum(move.bytes_to_copy for move in self.moves)

    @property
    def plan_hash(self) -> str:
        """The hash that its summary tells; :mod:`include.domain.plan.plan_hash` computes it."""
        return self.summary.plan_hash


@dataclass(frozen=True, slots=True)
class MoveCounts:
    """What the moves of a plan add up to.

    :param replica_moves: copies to be made; ``bytes_to_move``: what they weigh.
    :param leader_changes: partitions whose preferred leader changes.
    :param resized: partitions that end with more or fewer replicas.
    """

    replica_moves: int
    bytes_to_move: int
    leader_changes: int
    resized: int

    @classmethod
    def of(cls, moves: Iterable[Move]) -> MoveCounts:
        """Count without making an object of each move."""
        table = moves_table(moves).combine_chunks()
        current, target = (
            padded(table.column(name).combine_chunks()) for name in ("current", "target")
        )
        held = target >= 0
        copies = (held & (target[:, :, None] != current[:, None, :]).all(axis=2)).sum(axis=1)
        return cls(
            replica_moves=int(copies.sum()),
            bytes_to_move=int((copies * table.column("size_bytes").to_numpy()).sum()),
            leader_changes=int((current[:, 0] != target[:, 0]).sum()),
            resized=int(((current >= 0).sum(axis=1) != held.sum(axis=1)).sum()),
        )


def summary_to_json(summary: PlanSummary) -> dict[str, Any]:
    """``summary.json`` as plain JSON types; field names are those of :class:`PlanSummary`."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(summary)))
    return plain


def summary_from_json(content: Mapping[str, Any]) -> PlanSummary:
    """The inverse of :func:`summary_to_json`."""
    values = dict(content)
    values["infeasible"] = tuple(map(infeasible_from_json, values.get("infeasible", ())))
    kinds = {"brokers": BrokerLoad, "prices": TargetPrice, "links": Link}
    for name, kind in kinds.items():
        values[name] = tuple(kind(**item) for item in values.get(name, ()))
    values["resources"] = tuple(map(balance_from_json, values.get("resources", ())))
    topics = values.get("topics")
    values["topics"] = None if topics is None else TopicBalance(**topics)
    return PlanSummary(**values)


class MoveTable(Sequence[Move]):
    """Moves kept as columns: a :class:`Move` is made only when it is looked at.

    :param table: of schema :data:`MOVES`, sorted by topic and partition.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def by_partition(self) -> MovesByPartition:
        """Partition → its move."""
        topics, numbers = (self.table.column(name).to_pylist() for name in ("topic", "partition"))
        return MovesByPartition(map(TopicPartition, topics, numbers), self._at)

    def _at(self, places: Sequence[int]) -> Sequence[Move]:
        return moves_from_table(self.table.take(pa.array(places, pa.int64())))

    @property
    def brokers(self) -> frozenset[BrokerId]:
        """Every broker that a replica is moved from or to, or stays on."""
        flat = (pc.list_flatten(self.table.column(name)) for name in ("current", "target"))
        return frozenset(broker for found in flat for broker in pc.unique(found).to_pylist())

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that all of them write anew, between brokers and between log dirs."""
        named = pc.list_value_length(self.table.column("target_log_dirs"))
        within = moves_from_table(self.table.filter(pc.greater(named, 0)))
        relocated = sum(move.size_bytes * len(move.relocating) for move in within)
        return MoveCounts.of(self).bytes_to_move + relocated

    @overload
    def __getitem__(self, index: int) -> Move: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Move]: ...
    def __getitem__(self, index: int | slice) -> Move | Sequence[Move]:
        wanted = range(len(self))[index]
        if isinstance(wanted, int):
            return moves_from_table(self.table.slice(wanted, 1))[0]
        return self._at(wanted)

    def __iter__(self) -> Iterator[Move]:
        for batch in self.table.to_batches(max_chunksize=AT_ONCE):
            yield from moves_from_table(batch)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MoveTable):
            return bool(self.table.equals(other.table))
        return isinstance(other, tuple) and tuple(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MoveTable({len(self)} moves)"


def moves_table(moves: Iterable[Move]) -> pa.Table:
    """Moves as a table of schema :data:`MOVES`, sorted by topic and partition."""
    if isinstance(moves, MoveTable):
        return moves.table
    ordered = sorted(moves, key=lambda move: move.partition)
    columns: dict[str, list[Any]] = {
        "topic": [move.partition.topic for move in ordered],
        "partition": [move.partition.partition for move in ordered],
        "reason": [move.reason.value for move in ordered],
    }
    for name in MOVES.names:
        if name not in columns:
            columns[name] = [getattr(move, name) for move in ordered]
    return pa.table(columns, schema=MOVES)


def moves_from_table(table: pa.Table | pa.RecordBatch) -> tuple[Move, ...]:
    """The inverse of :func:`moves_table`."""
    return tuple(
        Move(
            partition=TopicPartition(row["topic"], row["partition"]),
            current=tuple(row["current"]),
            target=tuple(row["target"]),
            size_bytes=row["size_bytes"],
            reason=MoveReason(row["reason"]),
            why=row["why"],
            current_log_dirs=tuple(row["current_log_dirs"]),
            target_log_dirs=tuple(row["target_log_dirs"]),
            topic_id=row.get("topic_id", ""),
            in_sync=row.get("in_sync", -1),
        )
        for row in table.to_pylist()
    )
