"""A plan: moves with reasons, its hash, Kafka's JSON and the way back."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, overload

import pyarrow as pa

from include.cluster.model import BrokerId, TopicPartition
from include.planning.columns import ANY_LOG_DIR as ANY_LOG_DIR
from include.planning.columns import AT_ONCE, entries, padded
from include.planning.figures import Link, ResourceBalance, TargetPrice, balance_from_json

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
    ]
)
"""``moves.parquet``: one row per move, sorted by topic and partition."""


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
    :param topic_id: Kafka's id of the topic that was planned on (KIP-516); "" = not known.
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
class Infeasible:
    """A target that cannot be met, what forbids it, and the nearest that was reached."""

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
    :param ratio_to_bound: bytes copied over the lower bound, within brokers, too; None where the
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
        """Partition → its move."""
        return {move.partition: move for move in self.moves}

    @property
    def plan_hash(self) -> str:
        """SHA-256 over cluster, moves and their targets; what an approval is bound to."""
        return self.summary.plan_hash


def plan_hash(cluster_id: str, moves: Iterable[Move]) -> str:
    """SHA-256 (hex) over the cluster and, in partition order, what becomes of each partition.

    Covers what will happen (current and target replicas in their order, log dirs wanted), not
    how it is explained or how large it is: same hash, same effect.
    """
    shape = ("[", "topic", ",", "partition", ",[", "current", "],[", "target", "],[")
    digest = hashlib.sha256(f'{{"cluster_id":{json.dumps(cluster_id)},"moves":['.encode())
    for number, text in enumerate(entries(moves_table(moves), (*shape, "target_log_dirs", "]]"))):
        digest.update(f"{',' if number else ''}{text}".encode())
    digest.update(b"]}")
    return digest.hexdigest()


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
    kinds = {"brokers": BrokerLoad, "infeasible": Infeasible, "prices": TargetPrice, "links": Link}
    for name, kind in kinds.items():
        values[name] = tuple(kind(**item) for item in values.get(name, ()))
    values["resources"] = tuple(map(balance_from_json, values.get("resources", ())))
    return PlanSummary(**values)


class MoveTable(Sequence[Move]):
    """Moves kept as columns: a :class:`Move` is made only when it is looked at.

    :param table: of schema :data:`MOVES`, sorted by topic and partition.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Move: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Move]: ...
    def __getitem__(self, index: int | slice) -> Move | Sequence[Move]:
        wanted = range(len(self))[index]
        if isinstance(wanted, int):
            return moves_from_table(self.table.slice(wanted, 1))[0]
        return moves_from_table(self.table.take(pa.array(wanted, pa.int64())))

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
        )
        for row in table.to_pylist()
    )
