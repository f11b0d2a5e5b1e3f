"""The ledger's events: append-only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, bindparam, insert, or_, select

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.run.event_kind import EventKind, kind_of
from rehome.domain.run.states import MoveState
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import EVENTS, FOREIGN_REASSIGNMENTS, MOVES
from rehome.ledger.base.records import Event
from rehome.ledger.stores.audit.entries import write_audit

_INSERT = insert(EVENTS)
_ALL = select(EVENTS).order_by(EVENTS.c.event_id)
_OF_PLAN = _ALL.where(EVENTS.c.plan_id == bindparam("of"))
_LAST = (
    select(EVENTS.c.at)
    .where(EVENTS.c.plan_id == bindparam("of"), EVENTS.c.kind == bindparam("of_kind"))
    .order_by(EVENTS.c.event_id.desc())
    .limit(1)
)
_TURNS = (
    select(EVENTS.c.kind, EVENTS.c.at)
    .where(
        EVENTS.c.plan_id == bindparam("of"),
        EVENTS.c.kind.in_((EventKind.RUNNING, EventKind.PAUSED)),
    )
    .order_by(EVENTS.c.event_id)
)
_CANCELLED_BY = (
    select(EVENTS.c.actor)
    .where(
        EVENTS.c.plan_id == bindparam("of"),
        or_(
            EVENTS.c.kind == EventKind.CANCELLED,
            and_(EVENTS.c.kind == EventKind.REQUEST, EVENTS.c.detail == Decided.CANCEL),
        ),
        EVENTS.c.actor != bindparam("by_itself"),
    )
    .order_by(EVENTS.c.event_id.desc())
    .limit(1)
)
_REPORTED = select(
    FOREIGN_REASSIGNMENTS.c.topic,
    FOREIGN_REASSIGNMENTS.c.partition,
    FOREIGN_REASSIGNMENTS.c.replicas_target,
).where(FOREIGN_REASSIGNMENTS.c.plan_id == bindparam("of"))
_Reassignment = tuple[TopicPartition, tuple[BrokerId, ...]]

REHOME = "rehome"
"""The actor of what Rehome does by itself."""
DECIDED = {EventKind.APPROVAL_SENT_BACK: Decided.SENT_BACK}
"""Events that tell of a person's decision, and of which."""
FOREIGN_NAMED = 50
"""So many of them are written down for each plan."""


def write_event(
    connection: Connection,
    at: datetime,
    kind: EventKind,
    detail: str,
    *,
    actor: str = REHOME,
    plan_id: str | None = None,
    cluster_id: str | None = None,
) -> None:
    """Append an event inside a transaction that changes something else too."""
    about = {"plan_id": plan_id, "cluster_id": cluster_id}
    connection.execute(_INSERT, {"at": at, "actor": actor, "kind": kind, "detail": detail, **about})


class EventStore(Database):
    """Who did what, when."""

    def add_event(
        self,
        kind: EventKind,
        detail: str,
        *,
        actor: str = REHOME,
        plan_id: str | None = None,
        cluster_id: str | None = None,
    ) -> None:
        """Append an event; of what a person has decided, an audit row too."""
        with self.writing() as connection:
            now = self._clock()
            about: dict[str, Any] = {"plan_id": plan_id, "cluster_id": cluster_id}
            write_event(connection, now, kind, detail, actor=actor, **about)
            if kind in DECIDED:
                who = AuditEntry(DECIDED[kind], Door.TASK, user_name=actor, **about)
                write_audit(connection, now, replace(who, detail={"why": detail}))

    def add_event_if_new(self, kind: EventKind, detail: str, plan_id: str) -> None:
        """Append an event of a plan, unless its last one of this kind says the same."""
        last = select(EVENTS.c.detail).where(EVENTS.c.plan_id == plan_id, EVENTS.c.kind == kind)
        last = last.order_by(EVENTS.c.event_id.desc()).limit(1)
        with self.reading() as connection:
            if connection.execute(last).scalar_one_or_none() == detail:
                return
        self.add_event(kind, detail, plan_id=plan_id)

    def note_foreign_reassignments(
        self, plan_id: str, targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
    ) -> None:
        """Write down, once each, what is reassigned while a plan runs, and is none of its moves.

        :param targets: the target of each. What the plan has admitted meanwhile is its own.
        """
        with self.reading() as connection:
            if not _unreported_ones(targets, _reported_ones(connection, plan_id)):
                return
        own = select(MOVES.c.topic, MOVES.c.partition).where(
            MOVES.c.plan_id == plan_id, MOVES.c.state == MoveState.ADMITTED
        )
        with self.writing() as connection:
            admitted = {TopicPartition(*row) for row in connection.execute(own)}
            others = {p: target for p, target in targets.items() if p not in admitted}
            reports = _reported_ones(connection, plan_id)
            for number, (partition, target) in enumerate(
                _unreported_ones(others, reports), len(reports)
            ):
                connection.execute(
                    FOREIGN_REASSIGNMENTS.insert().values(
                        plan_id=plan_id,
                        number=number,
                        topic=partition.topic,
                        partition=partition.partition,
                        replicas_target=target,
                    )
                )
                write_event(
                    connection,
                    self._clock(),
                    EventKind.REASSIGNED_MEANWHILE,
                    f"{partition} to brokers {', '.join(map(str, target))}",
                    plan_id=plan_id,
                )

    def last_event_at(self, plan_id: str, kind: EventKind) -> datetime | None:
        """When something of this kind was last written of a plan; None = never."""
        of = {"of": plan_id, "of_kind": kind}
        with self.reading() as connection:
            return connection.execute(_LAST, of).scalar_one_or_none()

    def cancelled_by(self, plan_id: str) -> str | None:
        """The person who has asked for a plan's cancel, or rejected the plan; None = no person has,
        or it is not known.
        """
        with self.reading() as connection:
            of = {"of": plan_id, "by_itself": REHOME}
            return connection.execute(_CANCELLED_BY, of).scalar_one_or_none()

    def turns(self, plan_id: str) -> list[tuple[EventKind, datetime]]:
        """When a plan has started, paused and gone on, oldest first."""
        with self.reading() as connection:
            rows = connection.execute(_TURNS, {"of": plan_id})
            return [(EventKind(kind), at) for kind, at in rows]

    def events(self, plan_id: str | None = None) -> list[Event]:
        """Oldest first; of one plan, or all."""
        query, of = (_ALL, {}) if plan_id is None else (_OF_PLAN, {"of": plan_id})
        with self.reading() as connection:
            rows = connection.execute(query, of).mappings().all()
        return [event_of(row) for row in rows]


def event_of(row: RowMapping) -> Event:
    """An event's row as a value."""
    return Event(
        at=row["at"],
        actor=row["actor"],
        kind=kind_of(row["kind"]),
        detail=row["detail"],
        plan_id=row["plan_id"],
        cluster_id=row["cluster_id"],
    )


def _reported_ones(connection: Connection, plan_id: str) -> set[_Reassignment]:
    rows = connection.execute(_REPORTED, {"of": plan_id})
    return {(TopicPartition(topic, number), tuple(target)) for topic, number, target in rows}


def _unreported_ones(
    targets: Mapping[TopicPartition, tuple[BrokerId, ...]], reports: Collection[_Reassignment]
) -> list[_Reassignment]:
    """Those that are not in the ledger, as far as there is place for them."""
    new = [item for item in sorted(targets.items()) if item not in reports]
    return new[: FOREIGN_NAMED - len(reports)]
