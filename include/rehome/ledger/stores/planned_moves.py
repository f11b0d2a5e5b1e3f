"""What a plan was to move, kept with it: cancelling and cleaning up need nothing but the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, bindparam, select

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.run.states import MoveState
from rehome.errors import RehomeError
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import MOVES, PLANS

_OF_PLAN = (
    select(MOVES)
    .where(MOVES.c.plan_id == bindparam("of"))
    .order_by(MOVES.c.topic, MOVES.c.partition)
)
_IN_STATES = _OF_PLAN.where(MOVES.c.state.in_(bindparam("states", expanding=True)))
_TOPIC_IDS = (
    select(MOVES.c.plan_id, MOVES.c.topic, MOVES.c.topic_id)
    .distinct()
    .where(MOVES.c.plan_id.in_(bindparam("of", expanding=True)), MOVES.c.topic_id.is_not(None))
)


class PlannedMoveStore(Database):
    """Moves as they were planned: written with the plan, and never changed."""

    def planned_moves(self, plan_id: str, *states: MoveState) -> tuple[Move, ...]:
        """A plan's moves in partition order, as planned, but for their causes.

        :param states: only moves in one of these; none = all of them.
        :raises RehomeError: an earlier version of Rehome, which kept no targets, recorded them.
        """
        about: dict[str, Any] = {"of": plan_id}
        if states:
            about["states"] = list(states)
        with self.reading() as connection:
            rows = connection.execute(_IN_STATES if states else _OF_PLAN, about).mappings()
            return tuple(map(move_of, rows))

    def planned_topic_ids(self, plan_ids: Collection[str]) -> dict[tuple[str, str], str]:
        """Kafka's id of each topic that these plans move, by plan and name; as it was planned on.

        Topics of which none is known are left out.
        """
        with self.reading() as connection:
            rows = connection.execute(_TOPIC_IDS, {"of": list(plan_ids)}).all()
        return {(plan_id, topic): topic_id for plan_id, topic, topic_id in rows if topic_id}

    def overtaken_by(self, plan_id: str) -> str | None:
        """Another plan that has moved, or moves, a partition of a plan since that was made."""
        own, other, made, by = MOVES.alias(), MOVES.alias(), PLANS.alias(), PLANS.alias()
        same = (other.c.topic == own.c.topic) & (other.c.partition == own.c.partition)
        moved = (
            select(other.c.plan_id)
            .join(own, same)
            .where(
                own.c.plan_id == plan_id,
                other.c.plan_id == by.c.plan_id,
                other.c.state.in_((MoveState.ADMITTED, MoveState.DONE)),
                other.c.changed_at > made.c.created_at,
            )
            .correlate(by, made)
            .exists()
        )
        since = by.c.ended_at.is_(None) | (by.c.ended_at > made.c.created_at)
        query = select(by.c.plan_id).join(made, made.c.cluster_id == by.c.cluster_id)
        query = query.where(made.c.plan_id == plan_id, by.c.plan_id != plan_id)
        query = query.where(by.c.started_at.is_not(None), since, moved).order_by(by.c.plan_id)
        with self.reading() as connection:
            other_id: str | None = connection.execute(query.limit(1)).scalar_one_or_none()
        return other_id

    def not_recorded(self, plan_ids: Collection[str]) -> list[str]:
        """Those of the plans that this ledger knows nothing of, in order: it is a new one, or was
        restored from a backup of before.
        """
        with self.reading() as connection:
            recorded_ids = set(connection.scalars(select(PLANS.c.plan_id))) if plan_ids else set()
        return sorted(set(plan_ids) - recorded_ids)


def move_row(plan_id: str, move: Move, now: datetime) -> Mapping[str, Any]:
    """A move that is not admitted yet, as a row of the table ``moves``."""
    return {
        "plan_id": plan_id,
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "state": MoveState.PENDING,
        "detail": "",
        "bytes_to_move": move.bytes_to_copy,
        "changed_at": now,
        "replicas_current": list(move.current),
        "replicas_target": list(move.target),
        "log_dirs_current": list(move.current_log_dirs),
        "log_dirs_target": list(move.target_log_dirs),
        "size_bytes": move.size_bytes,
        "reason": move.reason,
        "topic_id": move.topic_id,
    }


def move_of(row: RowMapping) -> Move:
    """A move as planned, but for its causes.

    :raises RehomeError: an earlier version of Rehome, which kept no targets, recorded it.
    """
    partition = TopicPartition(row["topic"], row["partition"])
    if row["replicas_target"] is None:
        raise RehomeError(
            f"The ledger does not say where plan {row['plan_id']} moves {partition}: an earlier "
            "version of Rehome recorded it",
            state_left="",
            next_step="End the plan with that version.",
        )
    return Move(
        partition=partition,
        current=tuple(row["replicas_current"]),
        target=tuple(row["replicas_target"]),
        size_bytes=row["size_bytes"],
        reason=MoveReason(row["reason"]),
        current_log_dirs=tuple(row["log_dirs_current"]),
        target_log_dirs=tuple(row["log_dirs_target"]),
        topic_id=row["topic_id"],
    )
