"""Rows of reassignments: as they begin, and as values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import JSON, BigInteger, Column, Float, Integer, RowMapping, String, Table

from rehome.domain.clock import new_id
from rehome.domain.kafka import BrokerId, HighWatermark, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState
from rehome.ledger.base.models import METADATA, UtcDateTime
from rehome.ledger.base.records import Reassignment

SEEN_REASSIGNMENTS = Table(
    "seen_reassignments",
    METADATA,
    Column("cluster_id", String(200), primary_key=True),
    Column("topic", String(249), primary_key=True),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("seen_id", String(32), nullable=False),  # an identity of its own (KIP-240)
    Column("topic_id", String(40), nullable=False),  # empty: the brokers know none
    Column("replicas", JSON, nullable=False),
    Column("adding", JSON, nullable=False),
    Column("removing", JSON, nullable=False),
    Column("first_seen_at", UtcDateTime, nullable=False),
    Column("first_leader", Integer),  # when it was first seen; NULL: none, or not known
    Column("read_at", UtcDateTime, nullable=False),
    Column("bytes_in_place", BigInteger),  # at that time; NULL: not known
    Column("rate_bytes_per_s", Float),  # until then, since the reading before; NULL: not known
)
"""Reassignments in flight of whichever client, as readings of a cluster saw them last."""


def started_row(
    plan_id: str,
    move: Move,
    observation: Observation,
    rate_bytes_per_s: int | None,
    now: datetime,
    target: Sequence[BrokerId] | None = None,
) -> dict[str, object]:
    """The row of a move that is about to be sent, with an identity of its own.

    Its messages count as seen as far as the plan's snapshot had them: where the leader has fewer by
    now, the next poll finds that they are lost.

    :param target: of the move's next step; None = it has one.
    """
    partition_state = observation.partitions.get(move.partition)
    data = observation.high_watermarks.get(move.partition)
    high_watermark = data if isinstance(data, HighWatermark) else None
    if move.end_offset > (high_watermark.offset if high_watermark else 0):
        high_watermark = HighWatermark(
            move.end_offset, high_watermark.leader_epoch if high_watermark else 0
        )
    return {
        "reassignment_id": new_id(),
        "plan_id": plan_id,
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "topic_id": move.topic_id or None,
        "started_at": now,
        "first_leader": partition_state.leader if partition_state else None,
        "replicas_before": list(partition_state.replicas if partition_state else move.current),
        "replicas_target": list(move.target if target is None else target),
        "rate_bytes_per_s": rate_bytes_per_s,
        "detail": "",
        "high_watermark": high_watermark and high_watermark.offset,
        "leader_epoch": high_watermark and high_watermark.leader_epoch,
    }


def reassignment_of(row: RowMapping) -> Reassignment:
    """A reassignment's row as a value."""
    return Reassignment(
        reassignment_id=row["reassignment_id"],
        partition=TopicPartition(row["topic"], row["partition"]),
        topic_id=row["topic_id"],
        started_at=row["started_at"],
        sent_at=row["sent_at"],
        first_leader=row["first_leader"],
        replicas_before=tuple(row["replicas_before"]),
        replicas_target=tuple(row["replicas_target"]),
        rate_bytes_per_s=row["rate_bytes_per_s"],
        ended_at=row["ended_at"],
        outcome=MoveState(row["outcome"]) if row["outcome"] else None,
        detail=row["detail"],
        plan_id=row["plan_id"],
    )
