"""The throttle journal: written before a configuration changes, so that it can be put back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    and_,
    bindparam,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from rehome.domain.configs import ConfigResource
from rehome.domain.run.event_kind import EventKind
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import THROTTLE_ENTRIES
from rehome.ledger.base.records import SetBy, ThrottleEntry, ThrottleState
from rehome.ledger.stores.events import write_event

_CLOSED = [state for state in ThrottleState if not state.open]
_CHUNK = 100  # entries per statement: four parameters each, below every database's limit
_MARKS = ("state", "detail", "set_by")
_COLUMNS = [column.name for column in THROTTLE_ENTRIES.c if column.name != "entry_id"]
_UPDATE = update(THROTTLE_ENTRIES).where(THROTTLE_ENTRIES.c.entry_id == bindparam("at"))
_MARKED = _UPDATE.values(dict.fromkeys([*_MARKS, "changed_at"]))
_JOURNALLED = _UPDATE.values(dict.fromkeys(_COLUMNS))
_NEW = insert(THROTTLE_ENTRIES)
_Place = tuple[str, str, str, str]
_C = THROTTLE_ENTRIES.c
_AT_PLACES = select(THROTTLE_ENTRIES).where(
    tuple_(_C.plan_id, _C.resource_type, _C.resource_name, _C.key).in_(
        bindparam("places", expanding=True)
    )
)

_GONE_OFTEN = select(THROTTLE_ENTRIES).where(
    _C.plan_id == bindparam("of"),
    _C.state.not_in(_CLOSED),
    or_(
        _C.times_gone - _C.times_alerted >= bindparam("times"),
        and_(_C.times_gone > _C.times_alerted, _C.state != ThrottleState.APPLIED),
    ),
)
_OPEN_OF_OTHERS = select(THROTTLE_ENTRIES).where(
    _C.cluster_id.in_(bindparam("of_clusters", expanding=True)),
    _C.plan_id.not_in(bindparam("but", expanding=True)),
    _C.state.not_in(_CLOSED),
)


class ThrottleStore(Database):
    """Throttle entries, one per plan, resource and key."""

    def journal_throttles(
        self,
        entries: Collection[ThrottleEntry],
        *,
        inherits: bool = False,
        gone: Collection[ThrottleEntry] = (),
        revises: bool = False,
    ) -> None:
        """Write down, before the cluster is changed, what was set there and what will be added.

        Where an entry of the same plan, resource and key is still open, its prior value stays
        and our part grows: the present value may be our own. Not where it is intended only.

        :param inherits: the entries hold what other plans still owe there, and the value from
            before those: the others' entries are closed.
        :param gone: those of them that something in flight relies on, and found gone: that is
            counted.
        :param revises: their prior values replace those of open entries: another client has changed
            what it wants to have there.
        """
        if not entries:
            return
        with self.writing() as connection:
            now, rows_by_place = self._clock(), _rows_of(connection, entries)
            places = set(map(_place, gone))
            new, changed = [], []
            for entry in entries:
                row = rows_by_place.get(_place(entry))
                if _place(entry) in places:
                    entry = replace(entry, times_gone=entry.times_gone + 1)
                    _tell(connection, now, EventKind.THROTTLE_GONE, entry)
                if row is None:
                    new.append(_row(self, entry))
                else:
                    merged = _row(self, _merge(_entry(row), entry, revises=revises))
                    changed.append(merged | {"at": row["entry_id"]})
            if new:
                connection.execute(_NEW, new)
            if changed:
                connection.execute(_JOURNALLED, changed)
            if inherits:
                _take_over(connection, now, entries)

    def mark_throttles(self, entries: Collection[ThrottleEntry]) -> None:
        """Record what readings of the cluster have shown of entries, all in one transaction.

        :param entries: with the state, detail and ``set_by`` that they have now.
        """
        if not entries:
            return
        with self.writing() as connection:
            now, rows_by_place = self._clock(), _rows_of(connection, entries)
            changed = []
            for entry in entries:
                row = rows_by_place.get(_place(entry))
                if row is None or all(row[name] == getattr(entry, name) for name in _MARKS):
                    continue
                marks = {name: getattr(entry, name) for name in _MARKS}
                changed.append(marks | {"changed_at": now, "at": row["entry_id"]})
                if entry.state is ThrottleState.OWED:
                    _tell(connection, now, EventKind.THROTTLE_OWED, entry)
            if changed:
                connection.execute(_MARKED, changed)

    def throttles(
        self,
        plan_id: str | None = None,
        *,
        cluster_id: str | None = None,
        open_only: bool = False,
        resources: Collection[ConfigResource] | None = None,
        keys: Collection[str] | None = None,
    ) -> list[ThrottleEntry]:
        """Entries in the order they were journalled: of a plan, of a cluster, or all.

        :param resources: only of these; of others nothing is read.
        :param keys: likewise.
        """
        about = {"of_plan": plan_id, "of_cluster": cluster_id, "of_keys": keys}
        conditions = {name: value for name, value in about.items() if value is not None}
        with self.reading() as connection:
            rows: list[RowMapping] = []
            for part in _parts(resources):
                about = conditions | part
                rows += connection.execute(_entries(frozenset(about), open_only), about).mappings()
        return [_entry(row) for row in sorted(rows, key=lambda row: row["entry_id"])]

    def throttles_gone_often(self, plan_id: str, times: int) -> list[ThrottleEntry]:
        """Open entries found gone so many times since they were last reported; or found gone since
        then, and not set again.
        """
        about = {"of": plan_id, "times": times}
        with self.reading() as connection:
            return [_entry(row) for row in connection.execute(_GONE_OFTEN, about).mappings()]

    def mark_throttles_reported(self, entries: Sequence[ThrottleEntry]) -> None:
        """Record that these entries were reported, and how often each was gone by then."""
        with self.writing() as connection:
            rows_by_place = _rows_of(connection, entries)
            for entry in entries:
                at = {"at": rows_by_place[_place(entry)]["entry_id"]}
                connection.execute(_UPDATE, at | {"times_alerted": entry.times_gone})


def _merge(before: ThrottleEntry, new: ThrottleEntry, *, revises: bool) -> ThrottleEntry:
    if not before.state.open:
        return new
    if before.state is ThrottleState.INTENDED:
        times = before.times_gone + new.times_gone
        return replace(new, times_gone=times, times_alerted=before.times_alerted)
    return ThrottleEntry(
        plan_id=before.plan_id,
        cluster_id=before.cluster_id,
        resource=before.resource,
        key=before.key,
        ours=tuple(dict.fromkeys((*before.ours, *new.ours))),
        prior_value=(new if revises else before).prior_value,
        prior_source=(new if revises else before).prior_source,
        detail=new.detail,
        times_gone=before.times_gone + new.times_gone,
        times_alerted=before.times_alerted,
    )


def _rows_of(
    connection: Connection, entries: Collection[ThrottleEntry]
) -> dict[_Place, RowMapping]:
    """The rows of these entries that there are, by place."""
    places = sorted({_place(entry) for entry in entries})
    rows_by_place: dict[_Place, RowMapping] = {}
    for at in range(0, len(places), _CHUNK):
        these = {"places": places[at : at + _CHUNK]}
        for row in connection.execute(_AT_PLACES, these).mappings():
            where = (row["plan_id"], row["resource_type"], row["resource_name"], row["key"])
            rows_by_place[where] = row
    return rows_by_place


@cache
def _entries(of: frozenset[str], open_only: bool) -> Select[Any]:
    """Entries of a plan, a cluster, or some keys; made once, as polls ask for them."""
    query = select(THROTTLE_ENTRIES).order_by(THROTTLE_ENTRIES.c.entry_id)
    if open_only:
        query = query.where(THROTTLE_ENTRIES.c.state.not_in(_CLOSED))
    if "of_plan" in of:
        query = query.where(THROTTLE_ENTRIES.c.plan_id == bindparam("of_plan"))
    if "of_cluster" in of:
        query = query.where(THROTTLE_ENTRIES.c.cluster_id == bindparam("of_cluster"))
    if "of_keys" in of:
        query = query.where(THROTTLE_ENTRIES.c.key.in_(bindparam("of_keys", expanding=True)))
    if "of_resources" in of:
        resource = tuple_(THROTTLE_ENTRIES.c.resource_type, THROTTLE_ENTRIES.c.resource_name)
        query = query.where(resource.in_(bindparam("of_resources", expanding=True)))
    return query


def _parts(resources: Collection[ConfigResource] | None) -> Iterator[dict[str, Any]]:
    """What to ask for, in parts of a bounded number of resources."""
    if resources is None:
        yield {}
        return
    names = sorted((resource.type_value, resource.name) for resource in resources)
    for at in range(0, len(names), _CHUNK):
        yield {"of_resources": names[at : at + _CHUNK]}


def _place(entry: ThrottleEntry) -> _Place:
    return (entry.plan_id, entry.resource.type_value, entry.resource.name, entry.key)


def _take_over(connection: Connection, now: datetime, entries: Collection[ThrottleEntry]) -> None:
    """Close what other plans still had open at these keys."""
    by_key = {(e.cluster_id, e.resource, e.key): e.plan_id for e in entries}
    about = {
        "of_clusters": sorted({entry.cluster_id for entry in entries}),
        "but": sorted({entry.plan_id for entry in entries}),
    }
    for row in connection.execute(_OPEN_OF_OTHERS, about).mappings().all():
        entry = _entry(row)
        new_owner = by_key.get((entry.cluster_id, entry.resource, entry.key))
        if new_owner is not None:
            taken_over = f"plan {new_owner} has taken it over"
            closed = {"state": ThrottleState.CLEARED, "detail": taken_over, "changed_at": now}
            connection.execute(_UPDATE, {"at": row["entry_id"], **closed})


def _tell(connection: Connection, now: datetime, kind: EventKind, entry: ThrottleEntry) -> None:
    write_event(
        connection,
        now,
        kind,
        entry.line,
        plan_id=entry.plan_id,
        cluster_id=entry.cluster_id,
    )


def _row(store: Database, entry: ThrottleEntry) -> dict[str, object]:
    return {
        "plan_id": entry.plan_id,
        "cluster_id": entry.cluster_id,
        "resource_type": entry.resource.type_value,
        "resource_name": entry.resource.name,
        "key": entry.key,
        "ours": list(entry.ours),
        "prior_value": entry.prior_value,
        "prior_source": entry.prior_source,
        "state": entry.state,
        "detail": entry.detail,
        "set_by": entry.set_by,
        "times_gone": entry.times_gone,
        "times_alerted": entry.times_alerted,
        "changed_at": store._clock(),
    }


def _entry(row: RowMapping) -> ThrottleEntry:
    return ThrottleEntry(
        plan_id=row["plan_id"],
        cluster_id=row["cluster_id"],
        resource=ConfigResource(row["resource_type"], row["resource_name"]),
        key=row["key"],
        ours=tuple(row["ours"]),
        prior_value=row["prior_value"],
        prior_source=row["prior_source"],
        state=ThrottleState(row["state"]),
        detail=row["detail"],
        set_by=SetBy(row["set_by"]),
        times_gone=row["times_gone"],
        times_alerted=row["times_alerted"],
        changed_at=row["changed_at"],
    )
