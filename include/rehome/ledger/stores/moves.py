"""Moves and reassignments in the ledger: written before the cluster is changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    bindparam,
    exists,
    func,
    insert,
    select,
    update,
)

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.ledger_view import (
    MoveStep,
    RefusedCancel,
    refused_from_json,
    refused_to_json,
)
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import MOVES, PLANS, REASSIGNMENTS
from rehome.ledger.base.partition_chunks import at_partitions, chunks
from rehome.ledger.base.reassignment_rows import reassignment_of, started_row
from rehome.ledger.base.records import MoveRecord, Reassignment
from rehome.ledger.stores.copies.brought import add_taken_back, brought
from rehome.ledger.stores.copies.move_views import OPEN_STATES
from rehome.ledger.stores.data_seen import (
    SEEN,
    open_starts,
    open_starts_at,
    step_of,
    unless_lost,
)
from rehome.ledger.stores.events import write_event

UNWELL = tuple(state for state in MoveState if state.ended and not state.well)
"""Something of a move may be left to be moved, and nothing more is done about it."""
_VERSION = select(PLANS.c.moves_version).where(PLANS.c.plan_id == bindparam("of"))
_NEXT_VERSION = (
    update(PLANS)
    .where(PLANS.c.plan_id == bindparam("of"))
    .values(moves_version=PLANS.c.moves_version + 1)
)
_PROGRESS = (
    update(PLANS)
    .where(PLANS.c.plan_id == bindparam("of"))
    .values(last_progress_at=bindparam("now"))
)
_STOPPED_WITH_ADMITTED = (
    select(PLANS.c.plan_id)
    .where(
        PLANS.c.cluster_id == bindparam("of"),
        PLANS.c.state != PlanState.RUNNING,
        exists().where(MOVES.c.plan_id == PLANS.c.plan_id, MOVES.c.state == MoveState.ADMITTED),
    )
    .order_by(PLANS.c.created_at)
)
_MAY_ADMIT = select(PLANS.c.state, PLANS.c.cancel_requested).where(
    PLANS.c.plan_id == bindparam("of")
)
_CHANGE = update(MOVES).where(
    MOVES.c.plan_id == bindparam("of"),
    MOVES.c.topic == bindparam("of_topic"),
    MOVES.c.partition == bindparam("number"),
)
_LEAVE = _CHANGE.where(MOVES.c.state == bindparam("left_state"))
_STATES = select(MOVES.c.topic, MOVES.c.partition, MOVES.c.state).where(
    MOVES.c.plan_id == bindparam("of"),
    at_partitions(MOVES),
)
_STARTED = insert(REASSIGNMENTS)
_OPEN = update(REASSIGNMENTS).where(
    REASSIGNMENTS.c.plan_id == bindparam("of"), REASSIGNMENTS.c.ended_at.is_(None)
)
_END = _OPEN.where(
    REASSIGNMENTS.c.topic == bindparam("of_topic"),
    REASSIGNMENTS.c.partition == bindparam("number"),
)
_SENT = _OPEN.where(
    at_partitions(REASSIGNMENTS),
    REASSIGNMENTS.c.sent_at.is_(None),
)
_OPEN_STARTS = (
    select(REASSIGNMENTS)
    .join(PLANS, PLANS.c.plan_id == REASSIGNMENTS.c.plan_id)
    .where(PLANS.c.cluster_id == bindparam("of"), REASSIGNMENTS.c.ended_at.is_(None))
    .order_by(REASSIGNMENTS.c.topic, REASSIGNMENTS.c.partition)
)


class MoveStore(Database):
    """What was admitted, sent and settled."""

    def admit(
        self,
        plan_id: str,
        moves: Collection[Move],
        observation: Observation,
        rate_bytes_per_s: int | None,
        targets: Mapping[TopicPartition, Sequence[BrokerId]] | None = None,
    ) -> bool:
        """Journal that these moves are about to be sent; each start gets an identity.

        Moves that are admitted already keep theirs, so a retry changes nothing.

        :param targets: of the first steps of moves that are made in several.
        :returns: False, and nothing is journalled, when the plan was stopped or asked to cancel
            since the caller looked.
        """
        with self.writing() as connection:
            if not _goes_on(connection, plan_id):
                return False
            now, version = self._clock(), next_version(connection, plan_id)
            states = _states(connection, plan_id, [move.partition for move in moves])
            new = [move for move in moves if states.get(move.partition) is MoveState.PENDING]
            if not new:
                return True
            values = {"state": MoveState.ADMITTED, "detail": "", "changed_at": now}
            values |= {"version": version, "left_state": MoveState.PENDING}
            connection.execute(_LEAVE, [_place(plan_id, each.partition) | values for each in new])
            firsts = targets or {}
            rows = [
                started_row(
                    *(plan_id, move, observation, rate_bytes_per_s, now),
                    firsts.get(move.partition),
                )
                for move in new
            ]
            connection.execute(_STARTED, rows)
            _touch(connection, plan_id, now)
            return True

    def admit_steps(
        self,
        plan_id: str,
        moves: Collection[Move],
        targets: Mapping[TopicPartition, Sequence[BrokerId]],
        observation: Observation,
        rate_bytes_per_s: int | None,
    ) -> bool:
        """Journal that the next steps of these moves, which are admitted, are about to be sent: the
        step before is done, and each step is a reassignment with an identity of its own. What is
        known of the move's messages goes on.

        A step that is journalled already keeps its identity, so a retry changes nothing.

        :returns: False, and nothing is journalled, where :meth:`admit` says so.
        """
        with self.writing() as connection:
            if not _goes_on(connection, plan_id):
                return False
            now = self._clock()
            starts = open_starts_at(connection, plan_id, [move.partition for move in moves])
            for move in moves:
                target, row = list(targets[move.partition]), starts.get(move.partition)
                if row is None or row["replicas_target"] == target:
                    continue
                done = Settle(move.partition, MoveState.DONE)
                connection.execute(_END, _end(plan_id, done, now))
                new = started_row(plan_id, move, observation, rate_bytes_per_s, now, target)
                connection.execute(_STARTED, [new | {k: row[k] for k in SEEN}])
            _touch(connection, plan_id, now)
            return True

    def steps(self, plan_id: str) -> dict[TopicPartition, MoveStep]:
        """What the controller was asked for last of the moves that are in flight."""
        with self.reading() as connection:
            starts = open_starts(connection, plan_id)
        return {partition: step_of(row) for partition, row in starts.items()}

    def mark_sent(self, plan_id: str, partitions: Collection[TopicPartition]) -> datetime:
        """Record that the controller has accepted these; as of when."""
        with self.writing() as connection:
            now = self._clock()
            for chunk in chunks(partitions):
                connection.execute(_SENT, {"of": plan_id, "sent_at": now} | chunk)
        return now

    def settle(
        self, plan_id: str, partition: TopicPartition, state: MoveState, detail: str = ""
    ) -> bool:
        """As :meth:`settle_all` of one move; False when that had been recorded before."""
        return bool(self.settle_all(plan_id, [Settle(partition, state, detail)]))

    def settle_all(self, plan_id: str, settlements: Collection[Settle]) -> list[TopicPartition]:
        """Record what became of moves, all in one transaction.

        PENDING takes an admitted move back, to be taken up again later; that is no progress. A
        move that has ended changes only by :meth:`settle_needless`. With one that is done goes what
        its copies hold, as the last poll has read it; what was taken back is added up.

        :returns: those of which that had not been recorded before.
        """
        return self._settle_all(plan_id, settlements, OPEN_STATES)

    def settle_needless(
        self, plan_id: str, settlements: Collection[Settle]
    ) -> list[TopicPartition]:
        """Record that moves need no moving any more that had not ended well: DONE or GONE.

        What their reassignments ended as stays. A move whose messages are lost stays FAILED.

        :returns: those of which that had not been recorded before.
        """
        return self._settle_all(plan_id, settlements, UNWELL)

    def _settle_all(
        self, plan_id: str, settlements: Collection[Settle], of: Collection[MoveState]
    ) -> list[TopicPartition]:
        if not settlements:
            return []
        with self.writing() as connection:
            now, version = self._clock(), next_version(connection, plan_id)
            copies = brought(connection, plan_id, {each.partition for each in settlements})
            wholes = {partition: copy.whole for partition, copy in copies.items()}
            settled = _settle(connection, plan_id, settlements, wholes, now, version, of)
            add_taken_back(connection, plan_id, settled, copies)
            if any(each.state is not MoveState.PENDING for each in settled):
                _touch(connection, plan_id, now)
        return [each.partition for each in settled]

    def note_not_cancelled(
        self,
        plan_id: str,
        answers: Mapping[TopicPartition, str],
        over: Collection[TopicPartition] = (),
    ) -> None:
        """Record what could not be cancelled; an event tells of each answer that is new.

        :param over: what was asked, too, and was not refused.
        """
        with self.writing() as connection:
            of_plan = PLANS.c.plan_id == plan_id
            row = connection.execute(select(PLANS.c.refused_cancels).where(of_plan)).scalar_one()
            refusals, now = refused_from_json(row), self._clock()
            kept = {p: refusal for p, refusal in refusals.items() if p not in over}
            for partition, answer in answers.items():
                before = refusals.get(partition)
                if before is None or before.answer != answer:
                    text = f"{partition}: {answer}"
                    write_event(connection, now, EventKind.NOT_CANCELLED, text, plan_id=plan_id)
                first = RefusedCancel(now, now, 1, answer)
                kept[partition] = first if before is None else before.again(answer, now)
            if kept != refusals:
                value = refused_to_json(kept) or None
                connection.execute(update(PLANS).where(of_plan).values(refused_cancels=value))

    def moves(self, plan_id: str) -> dict[TopicPartition, MoveRecord]:
        """Every move of the plan, by partition."""
        query = select(MOVES).where(MOVES.c.plan_id == plan_id)
        query = query.order_by(MOVES.c.topic, MOVES.c.partition)
        with self.reading() as connection:
            rows = connection.execute(query).mappings().all()
        records = (
            MoveRecord(
                partition=TopicPartition(row["topic"], row["partition"]),
                state=MoveState(row["state"]),
                detail=row["detail"],
                bytes_to_move=row["bytes_to_move"],
                changed_at=row["changed_at"],
                bytes_in_place=row["bytes_in_place"],
            )
            for row in rows
        )
        return {record.partition: record for record in records}

    def smallest_move_bytes(self, plan_id: str) -> int | None:
        """What the smallest move was to copy, between brokers and between log dirs; None = there
        are no moves.
        """
        query = select(func.min(MOVES.c.bytes_to_move)).where(MOVES.c.plan_id == plan_id)
        with self.reading() as connection:
            smallest: int | None = connection.execute(query).scalar_one()
        return smallest

    def last_done_at(self, plan_id: str) -> datetime | None:
        """When the last move of the plan was done; None = none is."""
        query = select(func.max(MOVES.c.changed_at)).where(
            MOVES.c.plan_id == plan_id, MOVES.c.state == MoveState.DONE
        )
        with self.reading() as connection:
            done_at: datetime | None = connection.execute(query).scalar()
        return done_at

    def stopped_with_admitted(self, cluster_id: str) -> list[str]:
        """Plans of a cluster that do not run, and of which moves could not be cancelled."""
        with self.reading() as connection:
            return list(connection.execute(_STOPPED_WITH_ADMITTED, {"of": cluster_id}).scalars())

    def open_starts(self, cluster_id: str) -> list[Reassignment]:
        """Reassignments of any plan of a cluster that are not known to have ended."""
        with self.reading() as connection:
            rows = connection.execute(_OPEN_STARTS, {"of": cluster_id}).mappings()
            return [reassignment_of(row) for row in rows]

    def reassignments(self, plan_id: str) -> list[Reassignment]:
        """Every reassignment that the plan has started, in the order of their starts."""
        query = select(REASSIGNMENTS).where(REASSIGNMENTS.c.plan_id == plan_id)
        query = query.order_by(
            REASSIGNMENTS.c.started_at, REASSIGNMENTS.c.topic, REASSIGNMENTS.c.partition
        )
        with self.reading() as connection:
            return [reassignment_of(row) for row in connection.execute(query).mappings()]


def _states(
    connection: Connection, plan_id: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, MoveState]:
    """Of the moves of these partitions. They stay until the transaction ends: writers take turns,
    see :func:`next_version`.
    """
    states = {}
    for chunk in chunks(partitions):
        for row in connection.execute(_STATES, {"of": plan_id} | chunk):
            states[TopicPartition(row.topic, row.partition)] = MoveState(row.state)
    return states


def _settle(
    connection: Connection,
    plan_id: str,
    settlements: Collection[Settle],
    wholes: Mapping[TopicPartition, int | None],
    now: datetime,
    version: int,
    of: Collection[MoveState],
) -> list[Settle]:
    """Record what became of moves in one of these states.

    :param wholes: what copies hold if their move is done; None = not known.
    :returns: those of which that had not been recorded before.
    """
    partitions = {each.partition for each in settlements}
    starts = open_starts_at(connection, plan_id, partitions)
    states = _states(connection, plan_id, partitions)
    settled, changes, ends = [], [], []
    for settlement in settlements:
        partition, was = settlement.partition, states.get(settlement.partition)
        each = unless_lost(starts.get(partition), settlement)
        if was not in of or was is each.state:
            continue
        states[partition] = each.state
        settled.append(settlement)
        in_place = wholes.get(partition) if each.state is MoveState.DONE else None
        values: dict[str, Any] = {"state": each.state, "detail": each.detail}
        values |= {"bytes_in_place": in_place, "changed_at": now, "version": version}
        changes.append(_place(plan_id, partition) | values | {"left_state": was})
        outcome = MoveState.CANCELLED if each.state is MoveState.PENDING else each.state
        ends.append(_end(plan_id, Settle(partition, outcome, each.detail), now))
        if each.state is not MoveState.DONE:
            kind = EventKind.of_move(each.state)
            write_event(connection, now, kind, f"{partition}: {each.detail}", plan_id=plan_id)
    if settled:
        connection.execute(_LEAVE, changes)
        connection.execute(_END, ends)
    return settled


def _end(plan_id: str, ended: Settle, now: datetime) -> dict[str, Any]:
    """What the reassignment of a partition that is open has ended as."""
    values: dict[str, Any] = {"ended_at": now, "outcome": ended.state, "detail": ended.detail}
    return _place(plan_id, ended.partition) | values


def _goes_on(connection: Connection, plan_id: str) -> bool:
    """Whether the plan runs, and is not asked to cancel."""
    plan = connection.execute(_MAY_ADMIT, {"of": plan_id}).one()
    return plan.state == PlanState.RUNNING and not plan.cancel_requested


def next_version(connection: Connection, plan_id: str) -> int:
    """The number of a change of the plan's moves, for the rows that it changes.

    Writers take turns, so that a reader that has seen a number has seen all that came before it.
    """
    connection.execute(_NEXT_VERSION, {"of": plan_id})
    version: int = connection.execute(_VERSION, {"of": plan_id}).scalar_one()
    return version


def _place(plan_id: str, partition: TopicPartition) -> dict[str, object]:
    return {"of": plan_id, "of_topic": partition.topic, "number": partition.partition}


def _touch(connection: Connection, plan_id: str, now: datetime) -> None:
    """An admission or a settlement is progress: a stall is counted from here."""
    connection.execute(_PROGRESS, {"of": plan_id, "now": now})
