"""Exports of the audit and of events: files that the ledger can tell from forged ones for good."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import chain
from typing import IO, Any

from sqlalchemy import Column, Connection, RowMapping, Table, delete, func, select

from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.ledger.base.audit_entry import AuditEntry, AuditExport, Decided, Door
from rehome.ledger.base.audit_tables import AUDIT, AUDIT_EXPORTS
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import EVENTS, IDENTITY, PLANS
from rehome.ledger.stores.audit.entries import write_audit

EXPORT_FORMAT = "rehome audit 1"
EXPORTED = AUDIT, EVENTS
ROWS_AT_ONCE = 1000
_ENDED = tuple(state for state in PlanState if state.ended)


@dataclass(frozen=True, slots=True)
class _Range:
    """Rows from ``since`` on and before ``until``, up to the newest of each table."""

    since: datetime | None
    until: datetime
    last: dict[str, int] = field(default_factory=dict)

    def covers(self, table: Table) -> list[Any]:
        conditions = [table.c.at < self.until, _key(table) <= self.last[table.name]]
        return conditions if self.since is None else [*conditions, table.c.at >= self.since]


class AuditExportStore(Database):
    """Export, removal of what was exported, and the check of a file."""

    def export_audit(
        self, file: IO[bytes], by: str, since: datetime | None, until: datetime
    ) -> AuditExport:
        """Write the audit and the events of a time to a file, a JSON object a line.

        The ledger is not changed: :meth:`keep_export` does that, once the file is safe.

        :param by: who asks for it.
        :param since, until: rows from then on, and before then; None = from the first one.
        :return: what the file holds.
        """
        digest, counted = sha256(), Counter[str]()
        with self.reading() as connection:
            tables = _newest(connection)
            rows = _Range(since, until, tables)
            head: dict[str, Any] = {
                "format": EXPORT_FORMAT,
                "ledger": _ledger_id(connection),
                "by": by,
            }
            head |= {"since": _json_time(since), "until": _json_time(until)}
            for line in chain([head], *(_lines(connection, rows, table) for table in EXPORTED)):
                counted[line.get("table", "")] += 1
                written = json.dumps(line, sort_keys=True).encode() + b"\n"
                digest.update(written)
                file.write(written)
        return AuditExport(
            at=self._clock(),
            by=by,
            since=since,
            until=until,
            audit_rows=counted["audit"],
            audit_last=tables["audit"],
            events_rows=counted["events"],
            events_last=tables["events"],
            removes=False,
            digest=digest.hexdigest(),
        )

    def keep_export(self, export: AuditExport, *, remove: bool = False) -> int:
        """Record an export for good and, if asked, remove what it covers.

        Events of plans that have not ended, and of new partitions, stay, and so does the newest row
        of each table: their numbers are never given away again.

        :return: how many rows were removed.
        :raises PlanConflictError: the ledger does not hold any more what the export does: another
            one has removed rows meanwhile.
        """
        kept = replace(export, removes=remove)
        rows = _Range(
            kept.since, kept.until, {"audit": kept.audit_last, "events": kept.events_last}
        )
        with self.writing() as connection:
            for table, exported in ((AUDIT, kept.audit_rows), (EVENTS, kept.events_rows)):
                query = select(func.count()).select_from(table).where(*rows.covers(table))
                if connection.execute(query).scalar_one() != exported:
                    raise PlanConflictError(
                        "The ledger does not hold what was exported any more: another export has "
                        "removed a part of it meanwhile",
                        state_left="Nothing was removed or recorded by this one; its file is not "
                        "one that the ledger knows.",
                        next_step="Export again.",
                    )
            now = self._clock()
            values = {column.name: getattr(kept, column.name) for column in _columns()}
            connection.execute(AUDIT_EXPORTS.insert().values(**values))
            removed = _remove(connection, rows) if remove else 0
            write_audit(connection, now, _entry(kept, removed))
        return removed

    def audit_exports(self) -> list[AuditExport]:
        """Every export that there was, oldest first."""
        query = select(AUDIT_EXPORTS).order_by(AUDIT_EXPORTS.c.export_id)
        with self.reading() as connection:
            return [_export(row) for row in connection.execute(query).mappings()]

    def export_of(self, file: IO[bytes]) -> AuditExport | None:
        """The export that has written this file, byte for byte; None = none of this ledger has."""
        digest = sha256()
        while part := file.read(1 << 20):
            digest.update(part)
        exports = [export for export in self.audit_exports() if export.digest == digest.hexdigest()]
        return exports[0] if exports else None


def _key(table: Table) -> Column[Any]:
    (key,) = table.primary_key.columns
    return key


def _newest(connection: Connection) -> dict[str, int]:
    return {
        table.name: connection.execute(select(func.max(_key(table)))).scalar() or 0
        for table in EXPORTED
    }


def _ledger_id(connection: Connection) -> str:
    return str(connection.execute(select(IDENTITY.c.ledger_id)).scalar_one())


def _lines(connection: Connection, rows: _Range, table: Table) -> Iterator[dict[str, Any]]:
    query = select(table).where(*rows.covers(table)).order_by(_key(table))
    in_parts = query.execution_options(yield_per=ROWS_AT_ONCE)
    for row in connection.execute(in_parts).mappings():
        yield {"table": table.name, **_json_row(row)}


def _json_row(row: RowMapping) -> dict[str, Any]:
    return {n: _json_time(v) if isinstance(v, datetime) else v for n, v in row.items()}


def _json_time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _remove(connection: Connection, rows: _Range) -> int:
    ended = select(PLANS.c.plan_id).where(PLANS.c.state.in_(_ENDED))
    # Whether new partitions were begun, which are no plan, tasks know by their events.
    decided_by = EVENTS.c.plan_id.is_not(None) & EVENTS.c.plan_id.not_in(ended)
    removed = 0
    for table, conditions in (
        (AUDIT, []),
        (EVENTS, [~decided_by]),
    ):
        newest = select(func.max(_key(table))).scalar_subquery()
        gone = delete(table).where(*rows.covers(table), *conditions, _key(table) < newest)
        removed += connection.execute(gone).rowcount
    return removed


def _columns() -> list[Column[Any]]:
    return [column for column in AUDIT_EXPORTS.columns if not column.primary_key]


def _export(row: RowMapping) -> AuditExport:
    return AuditExport(**{column.name: row[column.name] for column in _columns()})


def _entry(export: AuditExport, removed: int) -> AuditEntry:
    detail = {
        "digest": export.digest,
        "since": _json_time(export.since),
        "until": _json_time(export.until),
        "audit_rows": export.audit_rows,
        "events_rows": export.events_rows,
        "removed": removed,
    }
    return AuditEntry(Decided.EXPORTED, Door.CLI, user_name=export.by, detail=detail)
