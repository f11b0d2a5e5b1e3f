"""What polls have seen of the messages of each move, in the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, bindparam, or_, select, update

from rehome.domain.kafka import HighWatermark, TopicPartition
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.ledger_view import DataSeen, MoveStep
from rehome.domain.run.states import MoveState, Settle
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import REASSIGNMENTS
from rehome.ledger.base.partition_chunks import at_partitions, chunks
from rehome.ledger.stores.events import write_event

_STARTS = REASSIGNMENTS.c
_OPEN_STARTS = select(
    _STARTS.topic,
    _STARTS.partition,
    _STARTS.sent_at,
    _STARTS.replicas_before,
    _STARTS.replicas_target,
    _STARTS.high_watermark,
    _STARTS.leader_epoch,
    _STARTS.lost_from,
    _STARTS.lost_until,
).where(_STARTS.plan_id == bindparam("of"), _STARTS.ended_at.is_(None))
SEEN = ("high_watermark", "leader_epoch", "lost_from", "lost_until")
"""Columns of what was seen of a move's messages."""
_OPEN_STARTS_AT = _OPEN_STARTS.where(at_partitions(REASSIGNMENTS))
_READ = (
    update(REASSIGNMENTS)
    .where(
        _STARTS.plan_id == bindparam("of"),
        _STARTS.topic == bindparam("of_topic"),
        _STARTS.partition == bindparam("of_partition"),
        _STARTS.ended_at.is_(None),
    )
    .values(high_watermark=bindparam("new_offset"), leader_epoch=bindparam("new_epoch"))
)
_SEEN = select(REASSIGNMENTS).where(_STARTS.plan_id == bindparam("of"))
_LOST = _SEEN.where(_STARTS.lost_from.is_not(None)).order_by(_STARTS.started_at)
_SEEN = _SEEN.order_by(_STARTS.started_at)


class DataSeenStore(Database):
    """High watermarks of what moves, and offsets that were there and are gone."""

    def record_data_seen(
        self, plan_id: str, data_by_partition: Mapping[TopicPartition, DataSeen]
    ) -> None:
        """Record what a poll has read of moves in flight. What is newly lost gets an event."""
        if not data_by_partition:
            return
        starts = REASSIGNMENTS.c
        with self.writing() as connection:
            connection.execute(
                _READ, [{"of": plan_id} | _row(*item) for item in data_by_partition.items()]
            )
            now = self._clock()
            for partition, data in data_by_partition.items():
                if not data.lost:
                    continue
                loss_differs = or_(
                    starts.lost_from.is_(None),
                    starts.lost_from != data.lost.start,
                    starts.lost_until != data.lost.stop,
                )
                changed = connection.execute(
                    update(REASSIGNMENTS)
                    .where(
                        starts.plan_id == plan_id,
                        starts.topic == partition.topic,
                        starts.partition == partition.partition,
                        starts.ended_at.is_(None),
                        loss_differs,
                    )
                    .values(lost_from=data.lost.start, lost_until=data.lost.stop)
                )
                if changed.rowcount:
                    detail = f"{partition}: {data.lost_text}"
                    write_event(connection, now, EventKind.DATA_LOST, detail, plan_id=plan_id)

    def data_seen(self, plan_id: str) -> dict[TopicPartition, DataSeen]:
        """What was last seen of every partition that the plan has started to move."""
        return self._data_by_partition(plan_id, _SEEN)

    def lost_data(self, plan_id: str) -> dict[TopicPartition, DataSeen]:
        """Partitions of which messages were lost while the plan moved them."""
        return self._data_by_partition(plan_id, _LOST)

    def _data_by_partition(
        self, plan_id: str, query: Select[Any]
    ) -> dict[TopicPartition, DataSeen]:
        with self.reading() as connection:
            rows = connection.execute(query, {"of": plan_id}).mappings().all()
        return {TopicPartition(row["topic"], row["partition"]): data_of(row) for row in rows}


def data_of(row: RowMapping) -> DataSeen:
    """A reassignment's row as what was seen of its data."""
    offset, epoch = row["high_watermark"], row["leader_epoch"]
    lost = range(0) if row["lost_from"] is None else range(row["lost_from"], row["lost_until"])
    return DataSeen(None if offset is None else HighWatermark(offset, epoch), lost)


def open_starts(connection: Connection, plan_id: str) -> dict[TopicPartition, RowMapping]:
    """What was seen of a plan's reassignments that are not known to have ended."""
    rows = connection.execute(_OPEN_STARTS, {"of": plan_id}).mappings()
    return {TopicPartition(row["topic"], row["partition"]): row for row in rows}


def open_starts_at(
    connection: Connection, plan_id: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, RowMapping]:
    """The same of some partitions."""
    starts: dict[TopicPartition, RowMapping] = {}
    for chunk in chunks(partitions):
        rows = connection.execute(_OPEN_STARTS_AT, {"of": plan_id} | chunk).mappings()
        starts |= {TopicPartition(row["topic"], row["partition"]): row for row in rows}
    return starts


def step_of(row: RowMapping) -> MoveStep:
    """What a reassignment's row asks the controller for."""
    return MoveStep(tuple(row["replicas_before"]), tuple(row["replicas_target"]))


def unless_lost(row: RowMapping | None, settlement: Settle) -> Settle:
    """What becomes of a move whose messages are known to be lost: it is neither done nor tried
    again.

    :param row: its reassignment that is not known to have ended; None = there is none.
    """
    if settlement.state not in (MoveState.DONE, MoveState.PENDING):
        return settlement
    lost = "" if row is None else data_of(row).lost_text
    return replace(settlement, state=MoveState.FAILED, detail=lost) if lost else settlement


def _row(partition: TopicPartition, data: DataSeen) -> dict[str, object]:
    read = data.high_watermark
    return {
        "of_topic": partition.topic,
        "of_partition": partition.partition,
        "new_offset": read and read.offset,
        "new_epoch": read and read.leader_epoch,
    }
