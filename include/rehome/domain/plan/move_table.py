"""Moves in columns: ``moves.parquet``, and what is computed on them without an object of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.causes.cause_columns import (
    CAUSE_LIST,
    cause_column_of,
    causes_of,
    stored_sentences,
)
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.move_columns import ROWS_PER_BATCH, pad_lists
from rehome.domain.plan.moves_by_partition import IndexedMoves, MovesByPartition
from rehome.domain.text import count_text

MOVES_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("current", pa.list_(pa.int32()), nullable=False),  # preferred leader first
        pa.field("target", pa.list_(pa.int32()), nullable=False),  # preferred leader first
        pa.field("size_bytes", pa.int64(), nullable=False),  # of one replica
        pa.field("reason", pa.string(), nullable=False),  # a MoveReason
        pa.field("causes", CAUSE_LIST, nullable=False),  # why, for a person
        pa.field("current_log_dirs", pa.list_(pa.string()), nullable=False),  # as `current`, or []
        pa.field("target_log_dirs", pa.list_(pa.string()), nullable=False),  # as `target`, or []
        pa.field("topic_id", pa.string(), nullable=False),  # "" = not known
        pa.field("in_sync", pa.int32(), nullable=False),  # replicas when planned; -1 = not known
        pa.field("end_offset", pa.int64(), nullable=False),  # of the whole ISR then; -1 = not known
    ]
)
"""``moves.parquet``: one row per move, sorted by topic and partition."""


@dataclass(frozen=True, slots=True)
class MoveCounts:
    """What the moves of a plan add up to.

    :param replica_moves: copies to be made; ``bytes_to_move``: what they weigh.
    :param leader_changes: partitions whose preferred leader changes.
    :param resized: partitions that end with more or fewer replicas.
    :param elections: partitions of which nothing but the leader changes.
    """

    replica_moves: int
    bytes_to_move: int
    leader_changes: int
    resized: int
    elections: int

    @classmethod
    def of(cls, moves: Iterable[Move]) -> MoveCounts:
        """Count without making an object of each move."""
        table = moves_table(moves).combine_chunks()
        current, target = (
            pad_lists(table.column(name).combine_chunks()) for name in ("current", "target")
        )
        is_replica = target >= 0
        copies = (is_replica & (target[:, :, None] != current[:, None, :]).all(axis=2)).sum(axis=1)
        return cls(
            replica_moves=int(copies.sum()),
            bytes_to_move=int((copies * table.column("size_bytes").to_numpy()).sum()),
            leader_changes=int((current[:, 0] != target[:, 0]).sum()),
            resized=int(((current >= 0).sum(axis=1) != is_replica.sum(axis=1)).sum()),
            elections=pc.sum(pc.equal(table.column("reason"), MoveReason.ELECTION)).as_py() or 0,
        )


class MoveTable(IndexedMoves):
    """Moves kept as columns: a :class:`Move` is made only when it is used.

    :param table: of schema :data:`MOVES_SCHEMA`, sorted by topic and partition.
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
        return frozenset(broker for ids in flat for broker in pc.unique(ids).to_pylist())

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that all of them write anew, between brokers and between log dirs."""
        log_dir_counts = pc.list_value_length(self.table.column("target_log_dirs"))
        within = moves_from_table(self.table.filter(pc.greater(log_dir_counts, 0)))
        relocated = sum(move.size_bytes * len(move.relocating) for move in within)
        return MoveCounts.of(self).bytes_to_move + relocated

    @overload
    def __getitem__(self, index: int) -> Move: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Move]: ...
    def __getitem__(self, index: int | slice) -> Move | Sequence[Move]:
        positions = range(len(self))[index]
        if isinstance(positions, int):
            return moves_from_table(self.table.slice(positions, 1))[0]
        return self._at(positions)

    def __iter__(self) -> Iterator[Move]:
        for batch in self.table.to_batches(max_chunksize=ROWS_PER_BATCH):
            yield from moves_from_table(batch)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MoveTable):
            return bool(self.table.equals(other.table))
        return isinstance(other, tuple) and tuple(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MoveTable({count_text(len(self), 'move')})"


def moves_table(moves: Iterable[Move]) -> pa.Table:
    """Moves as a table of schema :data:`MOVES_SCHEMA`, sorted by topic and partition."""
    if isinstance(moves, MoveTable):
        return moves.table
    ordered = sorted(moves, key=lambda move: move.partition)
    columns: dict[str, Any] = {
        "topic": [move.partition.topic for move in ordered],
        "partition": [move.partition.partition for move in ordered],
        "reason": [move.reason.value for move in ordered],
        "causes": cause_column_of(move.causes for move in ordered),
    }
    for name in MOVES_SCHEMA.names:
        if name not in columns:
            columns[name] = [getattr(move, name) for move in ordered]
    return pa.table(columns, schema=MOVES_SCHEMA)


def moves_from_table(table: pa.Table | pa.RecordBatch) -> tuple[Move, ...]:
    """The inverse of :func:`moves_table`."""
    rows = table.select([name for name in table.schema.names if name != "causes"])
    return tuple(
        Move(
            partition=TopicPartition(row["topic"], row["partition"]),
            current=tuple(row["current"]),
            target=tuple(row["target"]),
            size_bytes=row["size_bytes"],
            reason=MoveReason(row["reason"]),
            causes=causes,
            current_log_dirs=tuple(row["current_log_dirs"]),
            target_log_dirs=tuple(row["target_log_dirs"]),
            topic_id=row.get("topic_id", ""),
            in_sync=row.get("in_sync", -1),
            end_offset=row.get("end_offset", -1),
        )
        for row, causes in zip(rows.to_pylist(), causes_of(table.column("causes")), strict=True)
    )


def as_moves(table: pa.Table) -> pa.Table:
    """A stored table of moves as today's columns are: an earlier version had a sentence of each
    move, ``why``, in place of causes.
    """
    if "why" not in table.column_names:
        return table
    at = table.column_names.index("why")
    causes = stored_sentences(table.column("why"))
    return table.set_column(at, MOVES_SCHEMA.field("causes"), causes)
