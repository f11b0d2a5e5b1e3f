"""What people page through: plans, moves and events, filtered and sorted by the database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    String,
    Table,
    bindparam,
    cast,
    func,
    or_,
    select,
)

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.progress import ReplicaStatus
from rehome.domain.run.states import BY_URGENCY, MoveState, PlanState
from rehome.ledger.base.approval_tables import DRY_RUNS, RECORDED_FILES
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import (
    EVENTS,
    FLOW_SAMPLES,
    MOVES,
    PLANS,
    PROGRESS_SAMPLES,
    RATE_CHANGES,
    REASSIGNMENTS,
    REPLICA_STATUSES,
    RUN_CAUSES,
    THROTTLE_ENTRIES,
)
from rehome.ledger.base.paging import (
    BusiestRate,
    Mark,
    MoveFilter,
    MoveLine,
    MoveOrder,
    Page,
    PlanFilter,
    PlanLine,
)
from rehome.ledger.base.partition_chunks import at_partitions, chunks
from rehome.ledger.base.plan_rows import record_of
from rehome.ledger.base.reassignment_rows import reassignment_of
from rehome.ledger.base.records import Event, Reassignment, ThrottleState
from rehome.ledger.stores.copies.move_views import sums_of, sums_of_plans
from rehome.ledger.stores.events import event_of
from rehome.ledger.stores.planned_moves import move_of
from rehome.ledger.stores.samples import newest_samples, status_of


def _rows_at_partitions(table: Table) -> Select[Any]:
    """Rows of a plan's partitions."""
    return select(table).where(table.c.plan_id == bindparam("of"), at_partitions(table))


_STARTS = _rows_at_partitions(REASSIGNMENTS).order_by(REASSIGNMENTS.c.started_at)
_STATUSES = _rows_at_partitions(REPLICA_STATUSES).order_by(REPLICA_STATUSES.c.broker)
_FLYING = (
    select(MOVES, REASSIGNMENTS.c.first_leader)
    .outerjoin(
        REASSIGNMENTS,
        (REASSIGNMENTS.c.plan_id == MOVES.c.plan_id)
        & (REASSIGNMENTS.c.topic == MOVES.c.topic)
        & (REASSIGNMENTS.c.partition == MOVES.c.partition)
        & REASSIGNMENTS.c.ended_at.is_(None),
    )
    .where(MOVES.c.plan_id == bindparam("of"), MOVES.c.state == MoveState.ADMITTED)
)
_MOVES_VERSION = select(PLANS.c.moves_version).where(PLANS.c.plan_id == bindparam("of"))
_CHANGED = select(MOVES).where(
    MOVES.c.plan_id == bindparam("of"),
    MOVES.c.version > bindparam("after"),
    MOVES.c.version <= bindparam("to"),
    MOVES.c.state == bindparam("in_state"),
)

_NEWEST = (
    PROGRESS_SAMPLES.c.sampled_at,
    EVENTS.c.event_id,
    RATE_CHANGES.c.change_id,
    RUN_CAUSES.c.at,
    DRY_RUNS.c.dry_run_id,
    RECORDED_FILES.c.file_id,
)
_MARK = select(
    PLANS.c.state,
    PLANS.c.cancel_requested,
    PLANS.c.pause_requested,
    PLANS.c.requested_rate_bytes_per_s,
    PLANS.c.moves_version,
    *(
        select(func.max(key)).where(key.table.c.plan_id == bindparam("of")).scalar_subquery()
        for key in _NEWEST
    ),
).where(PLANS.c.plan_id == bindparam("of"))
"""Made once: each open page asks for it every second."""


class PageStore(Database):
    """Reads for people: never more rows than a page shows, however many there are."""

    def plan_page(self, plan_filter: PlanFilter, offset: int, limit: int) -> Page[PlanLine]:
        """Plans, newest first."""
        query = select(PLANS).where(*_plan_conditions(plan_filter))
        newest = query.order_by(PLANS.c.created_at.desc(), PLANS.c.plan_id)
        with self.reading() as connection:
            rows = connection.execute(newest.offset(offset).limit(limit)).mappings().all()
            records = [record_of(row) for row in rows]
            sums = sums_of_plans(connection, [record.plan_id for record in records])
            lines = [
                PlanLine(
                    record,
                    next(iter(newest_samples(connection, record.plan_id, 1)), None),
                    sums[record.plan_id],
                )
                for record in records
            ]
            return Page(lines, _count(connection, query))

    def plan_counts(self, dag_ids: frozenset[str] | None = None) -> dict[PlanState, int]:
        """How many plans are in each state.

        :param dag_ids: as in ``PlanFilter``.
        """
        query = select(PLANS.c.state, func.count()).group_by(PLANS.c.state)
        query = query.where(*_plan_conditions(PlanFilter(dag_ids=dag_ids)))
        with self.reading() as connection:
            return {PlanState(state): count for state, count in connection.execute(query)}

    def dag_ids(self) -> frozenset[str]:
        """The DAGs that have made plans, as far as that is known."""
        query = select(PLANS.c.dag_id).where(PLANS.c.dag_id.is_not(None)).distinct()
        with self.reading() as connection:
            return frozenset(connection.execute(query).scalars())

    def plan_of_run(self, dag_id: str, run_id: str) -> str | None:
        """The newest plan that a DAG run has made or drives; None = there is none."""
        query = select(PLANS.c.plan_id).where(PLANS.c.dag_id == dag_id, PLANS.c.run_id == run_id)
        with self.reading() as connection:
            cursor = connection.execute(query.order_by(PLANS.c.created_at.desc()).limit(1))
            return cursor.scalar_one_or_none()

    def plan_that_ends(self, ending: str) -> str | None:
        """The newest plan whose id ends so: with what names the run that made it."""
        query = select(PLANS.c.plan_id).where(PLANS.c.plan_id.endswith(ending, autoescape=True))
        with self.reading() as connection:
            cursor = connection.execute(query.order_by(PLANS.c.created_at.desc()).limit(1))
            return cursor.scalar_one_or_none()

    def move_page(
        self,
        plan_id: str,
        move_filter: MoveFilter,
        offset: int,
        limit: int,
        counts: Mapping[MoveState, int] | None = None,
    ) -> Page[MoveLine]:
        """Moves of a plan with their starts and their replicas.

        :param counts: how many moves that match are in each state, where the caller knows; None =
            they are counted.
        """
        with self.reading() as connection:
            if counts is None:
                counts = _counts(connection, plan_id, move_filter)
            rows = _move_rows(connection, plan_id, move_filter, offset, limit, counts)
            partitions = [TopicPartition(row["topic"], row["partition"]) for row in rows]
            starts = _starts(connection, plan_id, partitions)
            statuses = _statuses(connection, plan_id, partitions)
            lines = [
                MoveLine(
                    move_of(row),
                    MoveState(row["state"]),
                    row["detail"],
                    starts.get(partition),
                    tuple(statuses.get(partition, ())),
                )
                for partition, row in zip(partitions, rows, strict=True)
            ]
            return Page(lines, sum(counts.values()))

    def flying(self, plan_id: str) -> list[tuple[Move, BrokerId | None]]:
        """Moves that are at the controller, with the leader that each had when it started."""
        with self.reading() as connection:
            rows = connection.execute(_FLYING, {"of": plan_id}).mappings()
            return [(move_of(row), row["first_leader"]) for row in rows]

    def move_sums(self, plan_id: str) -> dict[MoveState, MoveSums]:
        """How many moves are in each state, and their bytes."""
        with self.reading() as connection:
            return sums_of(connection, plan_id)

    def moves_changed(self, plan_id: str, version: int, state: MoveState) -> tuple[list[Move], int]:
        """Moves that are in a state, and have come to it after a version of the plan's moves.

        :returns: with the version to ask from next time.
        """
        with self.reading() as connection:
            newest: int = connection.execute(_MOVES_VERSION, {"of": plan_id}).scalar_one()
            if newest == version:
                return [], version
            # A later one may have been committed since: it is for next time, or counts twice.
            about = {"of": plan_id, "after": version, "to": newest, "in_state": state}
            rows = connection.execute(_CHANGED, about).mappings()
            return [move_of(row) for row in rows], newest

    def throttle_counts(self, plan_id: str) -> dict[ThrottleState, int]:
        """How many throttle settings of a plan are in each state."""
        entries = THROTTLE_ENTRIES.c
        query = select(entries.state, func.count()).group_by(entries.state)
        with self.reading() as connection:
            rows = connection.execute(query.where(entries.plan_id == plan_id)).all()
        return {ThrottleState(state): count for state, count in rows}

    def delivered_rates(self, plan_id: str, after: datetime | None = None) -> list[BusiestRate]:
        """What was delivered, oldest first; where a broker gave no answer, nothing is known.

        :param after: only of polls later than this; None = all.
        """
        flows = FLOW_SAMPLES.c
        query = select(flows.at, flows.busiest_bytes_per_s, flows.since, flows.silent)
        query = query.where(flows.plan_id == plan_id).order_by(flows.at)
        if after is not None:
            query = query.where(flows.at > after)
        with self.reading() as connection:
            rows = connection.execute(query).all()
        return [BusiestRate(at, rate, since) for at, rate, since, silent in rows if not silent]

    def event_page(self, plan_id: str, offset: int, limit: int) -> Page[Event]:
        """Events of a plan, newest first."""
        query = select(EVENTS).where(EVENTS.c.plan_id == plan_id)
        newest = query.order_by(EVENTS.c.event_id.desc()).offset(offset).limit(limit)
        with self.reading() as connection:
            rows = connection.execute(newest).mappings().all()
            return Page([event_of(row) for row in rows], _count(connection, query))

    def mark(self, plan_id: str) -> Mark | None:
        """A cheap mark of whether anything new is known of a plan; None = there is no plan."""
        with self.reading() as connection:
            row = connection.execute(_MARK, {"of": plan_id}).one_or_none()
        return None if row is None else Mark(*row)


def _plan_conditions(plan_filter: PlanFilter) -> Iterable[ColumnElement[bool]]:
    if plan_filter.states:
        yield PLANS.c.state.in_(plan_filter.states)
    if plan_filter.dag_ids is not None:
        yield or_(PLANS.c.dag_id.is_(None), PLANS.c.dag_id.in_(plan_filter.dag_ids))
    if plan_filter.text:
        columns = PLANS.c.plan_id, PLANS.c.action, PLANS.c.run_id, PLANS.c.actor, PLANS.c.cluster_id
        yield or_(*(column.icontains(plan_filter.text, autoescape=True) for column in columns))


def _move_conditions(move_filter: MoveFilter) -> Iterable[ColumnElement[bool]]:
    if move_filter.states:
        yield MOVES.c.state.in_(move_filter.states)
    if move_filter.topic:
        yield MOVES.c.topic.startswith(move_filter.topic, autoescape=True)
    if move_filter.broker is not None:
        sides = MOVES.c.replicas_current, MOVES.c.replicas_target
        yield or_(*(_names(side, move_filter.broker) for side in sides))


def _names(brokers: ColumnElement[Any], broker: BrokerId) -> ColumnElement[bool]:
    """Whether a JSON list of numbers holds one: both databases keep it as ``[3, 2]``."""
    text = cast(brokers, String)
    return or_(*(text.like(form.format(broker)) for form in ("[{}]", "[{},%", "%, {},%", "%, {}]")))


def _counts(connection: Connection, plan_id: str, move_filter: MoveFilter) -> dict[MoveState, int]:
    query = select(MOVES.c.state, func.count()).group_by(MOVES.c.state)
    query = query.where(MOVES.c.plan_id == plan_id, *_move_conditions(move_filter))
    return {MoveState(state): count for state, count in connection.execute(query)}


def _move_rows(
    connection: Connection,
    plan_id: str,
    move_filter: MoveFilter,
    offset: int,
    limit: int,
    counts: Mapping[MoveState, int],
) -> list[RowMapping]:
    query = select(MOVES).where(MOVES.c.plan_id == plan_id, *_move_conditions(move_filter))
    if move_filter.order is not MoveOrder.STATE:
        ordered = _in_order(query, plan_id, move_filter).offset(offset).limit(limit)
        return list(connection.execute(ordered).mappings())
    # State by state, each along the index: no sort of all the moves.
    rows: list[RowMapping] = []
    by_size = MOVES.c.bytes_to_move.asc() if move_filter.reverse else MOVES.c.bytes_to_move.desc()
    for state in BY_URGENCY[::-1] if move_filter.reverse else BY_URGENCY:
        count = counts.get(state, 0)
        if offset < count and len(rows) < limit:
            part = query.where(MOVES.c.state == state)
            part = part.order_by(by_size, MOVES.c.topic, MOVES.c.partition)
            part = part.offset(offset).limit(limit - len(rows))
            rows += connection.execute(part).mappings()
        offset = max(0, offset - count)
    return rows


def _in_order(query: Select[Any], plan_id: str, move_filter: MoveFilter) -> Select[Any]:
    """Sorted as wanted, and what is alike by partition, so that pages do not overlap."""
    partition = MOVES.c.topic, MOVES.c.partition
    match move_filter.order:
        case MoveOrder.SIZE:
            keys = [-MOVES.c.bytes_to_move]
        case MoveOrder.CHANGED:
            # Negated times have no common form: the version grows with every change.
            keys = [-MOVES.c.version]
        case MoveOrder.BEHIND:
            behind = _behind(plan_id)
            query = query.outerjoin(
                behind,
                (behind.c.topic == MOVES.c.topic) & (behind.c.partition == MOVES.c.partition),
            )
            keys = [-func.coalesce(behind.c.bytes_behind, 0)]
        case _:
            return query.order_by(*_directions(partition, reverse=move_filter.reverse))
    return query.order_by(*_directions(keys, reverse=move_filter.reverse), *partition)


def _directions(keys: Collection[ColumnElement[Any]], *, reverse: bool) -> list[ColumnElement[Any]]:
    return [key.desc() if reverse else key.asc() for key in keys]


def _behind(plan_id: str) -> Any:
    """Bytes behind of moves in flight, by partition: the others copy nothing."""
    replicas = REPLICA_STATUSES.c
    flying = (
        (MOVES.c.plan_id == replicas.plan_id)
        & (MOVES.c.topic == replicas.topic)
        & (MOVES.c.partition == replicas.partition)
        & (MOVES.c.state == MoveState.ADMITTED)
    )
    query = select(
        replicas.topic, replicas.partition, func.sum(replicas.bytes_behind).label("bytes_behind")
    ).join(MOVES, flying)
    query = query.where(replicas.plan_id == plan_id)
    return query.group_by(replicas.topic, replicas.partition).subquery()


def _count(connection: Connection, query: Select[Any]) -> int:
    counted: int = connection.execute(
        select(func.count()).select_from(query.subquery())
    ).scalar_one()
    return counted


def _starts(
    connection: Connection, plan_id: str, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, Reassignment]:
    """The newest reassignment of each partition."""
    newest: dict[TopicPartition, Reassignment] = {}
    for chunk in chunks(partitions):
        for row in connection.execute(_STARTS, {"of": plan_id} | chunk).mappings():
            newest[TopicPartition(row["topic"], row["partition"])] = reassignment_of(row)
    return newest


def _statuses(
    connection: Connection, plan_id: str, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, list[ReplicaStatus]]:
    """By broker."""
    statuses: dict[TopicPartition, list[ReplicaStatus]] = {}
    for chunk in chunks(partitions):
        for row in connection.execute(_STATUSES, {"of": plan_id} | chunk).mappings():
            partition = TopicPartition(row["topic"], row["partition"])
            statuses.setdefault(partition, []).append(status_of(row))
    return statuses
