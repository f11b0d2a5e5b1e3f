"""What the copies of a move hold, by the statuses that polls have recorded of its replicas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.run.progress import ReplicaState
from rehome.domain.run.states import MoveState, Settle
from rehome.ledger.base.models import MOVES, PLANS, REASSIGNMENTS, REPLICA_STATUSES
from rehome.ledger.base.partition_chunks import at_partitions, chunks
from rehome.ledger.stores.planned_moves import move_of

_STATUSES = REPLICA_STATUSES.c
_STARTED = (
    (REASSIGNMENTS.c.plan_id == MOVES.c.plan_id)
    & (REASSIGNMENTS.c.topic == MOVES.c.topic)
    & (REASSIGNMENTS.c.partition == MOVES.c.partition)
    & REASSIGNMENTS.c.ended_at.is_(None)
)
_READ = (
    (_STATUSES.plan_id == MOVES.c.plan_id)
    & (_STATUSES.topic == MOVES.c.topic)
    & (_STATUSES.partition == MOVES.c.partition)
)
_COPIES = (
    select(
        MOVES,
        REASSIGNMENTS.c.started_at,
        _STATUSES.broker,
        _STATUSES.status_at,
        _STATUSES.standing,
        _STATUSES.size_bytes.label("copied_bytes"),
        _STATUSES.bytes_behind,
    )
    .outerjoin(REASSIGNMENTS, _STARTED)
    .outerjoin(REPLICA_STATUSES, _READ)
    .where(
        MOVES.c.plan_id == bindparam("of"),
        at_partitions(MOVES),
    )
)


_TAKEN_BACK = (
    update(PLANS)
    .where(PLANS.c.plan_id == bindparam("of"))
    .values(bytes_taken_back=PLANS.c.bytes_taken_back + bindparam("taken_back"))
)
_TAKES_BACK = (MoveState.PENDING, MoveState.CANCELLED)
"""What becomes of a move whose copies in flight are taken back."""


class Brought(NamedTuple):
    """What the copies of a move in flight hold, as last read since it started. Bytes.

    :param so_far: what was read; copies that were not, count for nothing.
    :param whole: what they hold if it is done: what they lacked when they were read, they have got.
        None = not every copy was read.
    """

    so_far: int
    whole: int | None


def brought(
    connection: Connection, plan_id: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Brought]:
    """Of moves that are about to be settled. One that was never started has brought nothing.

    Moves that an earlier version of Rehome recorded without their targets are left out.
    """
    rows: dict[TopicPartition, list[RowMapping]] = {}
    for chunk in chunks(partitions):
        for row in connection.execute(_COPIES, {"of": plan_id} | chunk).mappings():
            partition = TopicPartition(row["topic"], row["partition"])
            if row["replicas_target"] is not None:
                rows.setdefault(partition, []).append(row)
    return {partition: _brought(partition_rows) for partition, partition_rows in rows.items()}


def add_taken_back(
    connection: Connection,
    plan_id: str,
    settled: Iterable[Settle],
    copies: Mapping[TopicPartition, Brought],
) -> None:
    """Add to the plan's row what copies had brought that were taken back.

    :param copies: what they held before their moves were settled.
    """
    back = (each.partition for each in settled if each.state in _TAKES_BACK)
    size = sum(copies[partition].so_far for partition in back if partition in copies)
    if size:
        connection.execute(_TAKEN_BACK, {"of": plan_id, "taken_back": size})


def _brought(rows: Collection[RowMapping]) -> Brought:
    first = next(iter(rows))
    started_at = first["started_at"]
    if started_at is None:
        return Brought(0, 0)
    move = move_of(first)
    # Compared here: by its index on times, SQLite would read all statuses of the plan for each row.
    since = [row for row in rows if row["status_at"] is not None and row["status_at"] >= started_at]
    read = {row["broker"]: row for row in since if row["copied_bytes"] is not None}
    copies = (*move.adding, *move.relocating)
    return Brought(
        sum(_so_far(read, move.adding, move.relocating)),
        sum(map(_whole, map(read.__getitem__, copies))) if read.keys() >= {*copies} else None,
    )


def _so_far(
    read: Mapping[BrokerId, RowMapping],
    adding: Iterable[BrokerId],
    relocating: Iterable[BrokerId],
) -> Iterable[int]:
    yield from (read[broker]["copied_bytes"] for broker in adding if broker in read)
    for broker in relocating:
        # In sync: what was read is the old log, or the new one in its place.
        if broker in read and read[broker]["standing"] != ReplicaState.IN_SYNC:
            yield read[broker]["copied_bytes"]


def _whole(row: RowMapping) -> int:
    """Of an in-sync replica all of it was read; others lacked something then."""
    lacked = 0 if row["standing"] == ReplicaState.IN_SYNC else row["bytes_behind"] or 0
    return int(row["copied_bytes"] + lacked)
