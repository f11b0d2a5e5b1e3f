"""Moves and reassignments in the ledger: written before the cluster is told."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, insert, select, tuple_, update

from include.cluster.model import TopicPartition
from include.execution.model import LedgerView, MoveState, Observation, PlanState
from include.execution.rates import CHANGES_VIEWED, FLOWS_VIEWED
from include.ledger.database import Database
from include.ledger.events import write_event
from include.ledger.models import MOVES, PLANS, REASSIGNMENTS
from include.ledger.rates import select_changes, select_flows
from include.ledger.records import MoveRecord, Reassignment
from include.planning.plan import Move

_CHUNK = 200  # partitions per statement: two parameters each, below every database's limit


class MoveStore(Database):
    """What was admitted, sent and settled."""

    def view(self, plan_id: str) -> LedgerView:
        """What `decide` needs to know of a plan."""
        with self._reading() as connection:
            plan = connection.execute(select(PLANS).where(PLANS.c.plan_id == plan_id))
            row = plan.mappings().one()
            moves = connection.execute(
                select(MOVES.c.topic, MOVES.c.partition, MOVES.c.state).where(
                    MOVES.c.plan_id == plan_id
                )
            ).all()
            sent = connection.execute(
                select(
                    REASSIGNMENTS.c.topic, REASSIGNMENTS.c.partition, REASSIGNMENTS.c.sent_at
                ).where(
                    REASSIGNMENTS.c.plan_id == plan_id,
                    REASSIGNMENTS.c.ended_at.is_(None),
                    REASSIGNMENTS.c.sent_at.is_not(None),
                )
            ).all()
            changes = select_changes(connection, plan_id, newest=CHANGES_VIEWED)
            flows = select_flows(connection, plan_id, newest=FLOWS_VIEWED)
        return LedgerView(
            state=PlanState(row["state"]),
            moves={TopicPartition(t, p): MoveState(state) for t, p, state in moves},
            last_progress_at=row["last_progress_at"],
            held_at=row["held_at"],
            cancel_requested=row["cancel_requested"],
            pause_requested=row["pause_requested"],
            sent={TopicPartition(t, p): sent_at for t, p, sent_at in sent},
            rate_bytes_per_s=row["rate_bytes_per_s"],
            requested_rate_bytes_per_s=row["requested_rate_bytes_per_s"],
            rates=tuple(changes),
            flows=tuple(flows),
        )

    def admit(
        self,
        plan_id: str,
        moves: Collection[Move],
        observation: Observation,
        rate_bytes_per_s: int | None,
    ) -> bool:
        """Journal that these moves are about to be sent; each start gets an identity.

        Moves that are admitted already keep theirs, so a retry changes nothing.

        :returns: False, and nothing is journalled, when the plan was stopped or asked to cancel
            since the caller looked.
        """
        with self._writing() as connection:
            plan = connection.execute(
                select(PLANS.c.state, PLANS.c.cancel_requested).where(PLANS.c.plan_id == plan_id)
            ).one()
            if plan.state != PlanState.RUNNING or plan.cancel_requested:
                return False
            now = self._clock()
            starts = []
            for move in moves:
                changed = connection.execute(
                    update(MOVES)
                    .where(_is(plan_id, move.partition), MOVES.c.state == MoveState.PENDING)
                    .values(state=MoveState.ADMITTED, detail="", changed_at=now)
                )
                if changed.rowcount == 1:
                    starts.append(_start(plan_id, move, observation, rate_bytes_per_s, now))
            if starts:
                connection.execute(insert(REASSIGNMENTS), starts)
                _touch(connection, plan_id, now)
            return True

    def mark_sent(self, plan_id: str, partitions: Collection[TopicPartition]) -> None:
        """Record that the controller has accepted these."""
        with self._writing() as connection:
            now = self._clock()
            ordered = sorted(partitions)
            for at in range(0, len(ordered), _CHUNK):
                connection.execute(
                    update(REASSIGNMENTS)
                    .where(
                        REASSIGNMENTS.c.plan_id == plan_id,
                        tuple_(REASSIGNMENTS.c.topic, REASSIGNMENTS.c.partition).in_(
                            [tuple(tp) for tp in ordered[at : at + _CHUNK]]
                        ),
                        REASSIGNMENTS.c.ended_at.is_(None),
                        REASSIGNMENTS.c.sent_at.is_(None),
                    )
                    .values(sent_at=now)
                )

    def settle(
        self, plan_id: str, partition: TopicPartition, state: MoveState, detail: str = ""
    ) -> bool:
        """Record what became of a move; False when that had been recorded before.

        PENDING takes an admitted move back, to be taken up again later; that is no progress. A
        move that has ended never changes any more.
        """
        with self._writing() as connection:
            now = self._clock()
            changed = connection.execute(
                update(MOVES)
                .where(
                    _is(plan_id, partition),
                    MOVES.c.state.in_([MoveState.PENDING, MoveState.ADMITTED]),
                    MOVES.c.state != state,
                )
                .values(state=state, detail=detail, changed_at=now)
            )
            if changed.rowcount != 1:
                return False
            outcome = MoveState.CANCELLED if state is MoveState.PENDING else state
            connection.execute(
                update(REASSIGNMENTS)
                .where(
                    REASSIGNMENTS.c.plan_id == plan_id,
                    REASSIGNMENTS.c.topic == partition.topic,
                    REASSIGNMENTS.c.partition == partition.partition,
                    REASSIGNMENTS.c.ended_at.is_(None),
                )
                .values(ended_at=now, outcome=outcome, detail=detail)
            )
            if state is not MoveState.PENDING:
                _touch(connection, plan_id, now)
            if state is not MoveState.DONE:
                write_event(
                    connection, now, f"move {state}", f"{partition}: {detail}", plan_id=plan_id
                )
            return True

    def moves(self, plan_id: str) -> dict[TopicPartition, MoveRecord]:
        """Every move of the plan, by partition."""
        query = select(MOVES).where(MOVES.c.plan_id == plan_id)
        query = query.order_by(MOVES.c.topic, MOVES.c.partition)
        with self._reading() as connection:
            rows = connection.execute(query).mappings().all()
        records = (
            MoveRecord(
                partition=TopicPartition(row["topic"], row["partition"]),
                state=MoveState(row["state"]),
                detail=row["detail"],
                bytes_to_move=row["bytes_to_move"],
                changed_at=row["changed_at"],
            )
            for row in rows
        )
        return {record.partition: record for record in records}

    def stopped_with_admitted(self, cluster_id: str) -> list[str]:
        """Plans of a cluster that do not run, and of which moves could not be cancelled."""
        query = (
            select(PLANS.c.plan_id)
            .where(
                PLANS.c.cluster_id == cluster_id,
                PLANS.c.state != PlanState.RUNNING,
                exists().where(
                    MOVES.c.plan_id == PLANS.c.plan_id, MOVES.c.state == MoveState.ADMITTED
                ),
            )
            .order_by(PLANS.c.created_at)
        )
        with self._reading() as connection:
            return list(connection.execute(query).scalars())

    def reassignments(self, plan_id: str) -> list[Reassignment]:
        """Every reassignment that the plan has started, in the order of their starts."""
        query = select(REASSIGNMENTS).where(REASSIGNMENTS.c.plan_id == plan_id)
        query = query.order_by(
            REASSIGNMENTS.c.started_at, REASSIGNMENTS.c.topic, REASSIGNMENTS.c.partition
        )
        with self._reading() as connection:
            return [_reassignment(row) for row in connection.execute(query).mappings()]


def _is(plan_id: str, partition: TopicPartition) -> ColumnElement[bool]:
    return (
        (MOVES.c.plan_id == plan_id)
        & (MOVES.c.topic == partition.topic)
        & (MOVES.c.partition == partition.partition)
    )


def _start(
    plan_id: str,
    move: Move,
    observation: Observation,
    rate_bytes_per_s: int | None,
    now: datetime,
) -> Mapping[str, object]:
    seen = observation.partitions.get(move.partition)
    return {
        "reassignment_id": uuid.uuid4().hex,
        "plan_id": plan_id,
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "topic_id": move.topic_id or None,
        "started_at": now,
        "first_leader": seen.leader if seen else None,
        "replicas_before": list(seen.replicas if seen else move.current),
        "replicas_target": list(move.target),
        "rate_bytes_per_s": rate_bytes_per_s,
        "detail": "",
    }


def _touch(connection: Connection, plan_id: str, now: datetime) -> None:
    """An admission or a settlement is progress: a stall is counted from here."""
    connection.execute(update(PLANS).where(PLANS.c.plan_id == plan_id).values(last_progress_at=now))


def _reassignment(row: RowMapping) -> Reassignment:
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
    )
