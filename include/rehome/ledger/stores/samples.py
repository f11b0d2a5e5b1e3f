"""Progress in the ledger: the state of each replica, how far the plan was at each poll, and how
soon Airflow acted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, fields, replace
from datetime import datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import (
    Connection,
    Executable,
    RowMapping,
    bindparam,
    func,
    insert,
    select,
    union,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from rehome.domain.kafka import ReplicaId
from rehome.domain.run.flows import FlowSample
from rehome.domain.run.progress import Gain, ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.run.timing import RunTiming, timing_of
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import (
    MOVES,
    PLANS,
    PROGRESS_SAMPLES,
    REASSIGNMENTS,
    REPLICA_STATUSES,
)
from rehome.ledger.base.plan_rows import select_plan, unknown_plan
from rehome.ledger.stores.copies.gains import put_gains
from rehome.ledger.stores.rates import put_flows

_SAMPLE_FIELDS = tuple(item.name for item in fields(ProgressSample))

TIMED_RUNS, _POLLS = 10, 200
"""So many of the newest runs are read, and of each so many of its newest polls."""


class Recorded(NamedTuple):
    """What recording a poll has changed: whether it was kept, and was progress."""

    kept: bool
    progressed: bool


def _in_flight() -> Executable:
    """Replicas that the newest poll saw, or whose move is admitted."""
    replicas = REPLICA_STATUSES.c
    of_plan = select(REPLICA_STATUSES).where(replicas.plan_id == bindparam("of"))
    newest = _SAMPLES.with_only_columns(PROGRESS_SAMPLES.c.sampled_at).limit(1)
    newest_replicas = of_plan.where(replicas.status_at == newest.scalar_subquery())
    admitted = of_plan.join(
        MOVES,
        (MOVES.c.plan_id == replicas.plan_id)
        & (MOVES.c.topic == replicas.topic)
        & (MOVES.c.partition == replicas.partition),
    ).where(MOVES.c.state == MoveState.ADMITTED)
    return union(newest_replicas, admitted)


_SAMPLES = (
    select(PROGRESS_SAMPLES)
    .where(PROGRESS_SAMPLES.c.plan_id == bindparam("of"))
    # Each is later than the one before (add_samples), and there is an index by time.
    .order_by(PROGRESS_SAMPLES.c.sampled_at.desc())
)
_NEWEST = _SAMPLES.limit(bindparam("newest"))
_NEW_SAMPLE = insert(PROGRESS_SAMPLES)
_PROGRESS = (
    update(PLANS).where(PLANS.c.plan_id == bindparam("of")).values(last_progress_at=bindparam("at"))
)
_HELD = update(PLANS).where(PLANS.c.plan_id == bindparam("of"))
_IN_FLIGHT = _in_flight()


class SampleStore(Database):
    """The plan's samples over time, and the newest KIP-179 status of each replica."""

    def add_samples(
        self,
        plan_id: str,
        statuses: Collection[ReplicaStatus],
        sample: ProgressSample,
        flows: FlowSample | None = None,
        gains: Collection[Gain] = (),
    ) -> Recorded:
        """Record one poll. A sample that is not newer than the last one is dropped.

        Where bytes or moves differ from the last sample, or fewer messages are missing, the
        plan has progressed. More messages missing is no progress: producers see to that alone.

        What was received never falls: of two processes that poll at once, each has read what the
        other had recorded, or not.

        :param flows: what brokers have copied since the last sample, where that is known.
        :param gains: what each copy has received since.
        :raises PlanConflictError: the ledger knows no such plan: it is another one by now.
        """
        with self.writing() as connection:
            last = _last(connection, plan_id)
            if last is None and select_plan(connection, plan_id) is None:
                raise unknown_plan(plan_id)
            if last is not None and sample.sampled_at <= last.sampled_at:
                return Recorded(kept=False, progressed=False)
            if last is not None and last.received_bytes and sample.received_bytes is not None:
                most = max(last.received_bytes, sample.received_bytes)
                sample = replace(sample, received_bytes=most)
            connection.execute(_NEW_SAMPLE, {"plan_id": plan_id, **asdict(sample)})
            _put(connection, plan_id, statuses)
            put_gains(connection, plan_id, sample.sampled_at, gains)
            if flows is not None:
                put_flows(connection, plan_id, flows)
            progressed = last is not None and _has_progressed(last, sample)
            if progressed:
                connection.execute(_PROGRESS, {"of": plan_id, "at": sample.sampled_at})
            return Recorded(kept=True, progressed=progressed)

    def record_hold(self, plan_id: str, at: datetime) -> None:
        """Record that a poll found nothing but another client's reassignment to wait for.

        A stall is counted from here; an alert, from the last progress.
        """
        with self.writing() as connection:
            connection.execute(_HELD, {"of": plan_id, "held_at": at})

    def samples(self, plan_id: str, newest: int | None = None) -> list[ProgressSample]:
        """The plan's samples, oldest first; or only the newest so many of them."""
        with self.reading() as connection:
            return newest_samples(connection, plan_id, newest)

    def latest(self, plan_id: str) -> dict[ReplicaId, ReplicaStatus]:
        """The newest status of every replica that has been read."""
        query = select(REPLICA_STATUSES).where(REPLICA_STATUSES.c.plan_id == plan_id)
        query = query.order_by(
            REPLICA_STATUSES.c.topic, REPLICA_STATUSES.c.partition, REPLICA_STATUSES.c.broker
        )
        with self.reading() as connection:
            statuses = [status_of(row) for row in connection.execute(query).mappings()]
        return {status.replica: status for status in statuses}

    def latest_in_flight(self, plan_id: str) -> dict[ReplicaId, ReplicaStatus]:
        """The newest status of replicas that the newest poll saw, or whose move is admitted.

        As many rows are read as moves are in flight, however many the plan has.
        """
        with self.reading() as connection:
            rows = connection.execute(_IN_FLIGHT, {"of": plan_id}).mappings().all()
        return {status.replica: status for status in map(status_of, rows)}


def newest_samples(
    connection: Connection, plan_id: str, newest: int | None
) -> list[ProgressSample]:
    """The newest samples of a plan, oldest first; None = all."""
    if newest is None:
        cursor = connection.execute(_SAMPLES, {"of": plan_id})
    else:
        cursor = connection.execute(_NEWEST, {"of": plan_id, "newest": newest})
    rows = cursor.mappings().all()
    return [_sample(row) for row in reversed(rows)]


def _has_progressed(last: ProgressSample, now: ProgressSample) -> bool:
    moved = (last.bytes_done, last.moves_done) != (now.bytes_done, now.moves_done)
    return moved or now.messages_behind < last.messages_behind


def _last(connection: Connection, plan_id: str) -> ProgressSample | None:
    return next(iter(newest_samples(connection, plan_id, 1)), None)


def _put(connection: Connection, plan_id: str, statuses: Collection[ReplicaStatus]) -> None:
    """Write them over the ones before, in one statement."""
    if not statuses:
        return
    rows = [
        {"plan_id": plan_id, **status.replica._asdict(), **_status_values(status)}
        for status in statuses
    ]
    connection.execute(_upsert(connection.dialect.name), rows)


@cache
def _upsert(dialect: str) -> Executable:
    """SQLite and PostgreSQL say it alike, and SQLAlchemy has no common name for it."""
    insert_or = sqlite.insert if dialect == "sqlite" else postgresql.insert
    statement = insert_or(REPLICA_STATUSES)
    keys = [column.name for column in REPLICA_STATUSES.primary_key]
    written = {
        column.name: statement.excluded[column.name]
        for column in REPLICA_STATUSES.columns
        if column.name not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=written)


def _status_values(status: ReplicaStatus) -> dict[str, object]:
    return {
        "standing": status.state,
        "status_at": status.status_at,
        "last_in_isr_at": status.last_in_isr_at,
        "messages_behind": status.messages_behind,
        "max_messages_behind": status.max_messages_behind,
        "bytes_behind": status.bytes_behind,
        "size_bytes": status.size_bytes,
    }


def _sample(row: RowMapping) -> ProgressSample:
    return ProgressSample(**{name: row[name] for name in _SAMPLE_FIELDS})


def status_of(row: RowMapping) -> ReplicaStatus:
    """A replica's row as a value."""
    return ReplicaStatus(
        replica=ReplicaId(row["topic"], row["partition"], row["broker"]),
        state=ReplicaState(row["standing"]),
        status_at=row["status_at"],
        last_in_isr_at=row["last_in_isr_at"],
        messages_behind=row["messages_behind"],
        max_messages_behind=row["max_messages_behind"],
        bytes_behind=row["bytes_behind"],
        size_bytes=row["size_bytes"],
    )


class TimingStore(Database):
    """Timings of plans that are done, of all clusters that share the ledger."""

    def run_timings(self) -> list[RunTiming]:
        """Of the newest plans that were carried out to their end, newest first."""
        done = (
            select(PLANS.c.plan_id, PLANS.c.started_at, PLANS.c.ended_at)
            .where(PLANS.c.state == PlanState.DONE)
            .order_by(PLANS.c.ended_at.desc(), PLANS.c.plan_id)
            .limit(TIMED_RUNS)
        )
        with self.reading() as connection:
            plans = connection.execute(done).mappings().all()
            timings = [_timing(connection, plan) for plan in plans]
        return [timing for timing in timings if timing is not None]


def _timing(connection: Connection, plan: RowMapping) -> RunTiming | None:
    """None of a plan that had nothing to move."""
    first = select(func.min(REASSIGNMENTS.c.started_at)).where(
        REASSIGNMENTS.c.plan_id == plan["plan_id"]
    )
    first_move_at = connection.execute(first).scalar_one()
    if first_move_at is None:
        return None
    samples = newest_samples(connection, plan["plan_id"], _POLLS)
    return timing_of(plan["started_at"], first_move_at, plan["ended_at"], samples)
