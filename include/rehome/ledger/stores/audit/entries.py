"""The audit's rows: append-only, by the database itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, String, insert

from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.ledger.base.audit_tables import AUDIT
from rehome.ledger.base.database import Database

_INSERT = insert(AUDIT)
LONGEST_TEXT, LONGEST_DETAIL, DEEPEST = 300, 4000, 4
"""Characters of a text within a detail, those of the whole detail as JSON, and how deep it goes."""


def write_audit(connection: Connection, at: datetime, entry: AuditEntry) -> None:
    """Append a decision inside the transaction that records what it leads to.

    Texts that are longer than their column, and details that are too large, are cut: what a
    request has named must not keep it out of the audit.
    """
    values: dict[str, Any] = {}
    for item in fields(AuditEntry):
        value, kind = getattr(entry, item.name), AUDIT.c[item.name].type
        values[item.name] = value
        if value is not None and isinstance(kind, String):
            values[item.name] = _text(value, kind.length or LONGEST_TEXT)
    values["detail"] = _small(entry.detail)
    connection.execute(_INSERT, {"at": at, **values})


def by_task(decision: Decided, actor: str, plan: Mapping[str, Any] | RowMapping) -> AuditEntry:
    """A decision about a plan that a task records for a person: Airflow keeps a name, no address.

    :param plan: ``plan_id``, ``cluster_id``, ``dag_id``, ``run_id``: as the plan's row has them.
    """
    return AuditEntry(
        decision,
        Door.TASK,
        user_name=actor,
        plan_id=plan["plan_id"],
        dag_id=plan["dag_id"],
        run_id=plan["run_id"],
        cluster_id=plan["cluster_id"],
    )


class AuditStore(Database):
    """Who decided what, when, from where."""

    def add_audit(self, entry: AuditEntry) -> None:
        """Append a decision, in a transaction of its own."""
        with self.writing() as connection:
            write_audit(connection, self._clock(), entry)


def _small(detail: Mapping[str, Any]) -> dict[str, Any]:
    cut = _cut(detail)
    length = len(json.dumps(cut))
    return cut if length <= LONGEST_DETAIL else {"left_out_characters": length}


def _cut(value: Any, depth: int = 0) -> Any:
    match value:
        case Mapping() if depth < DEEPEST:
            return {_text(key): _cut(each, depth + 1) for key, each in value.items()}
        case list() | tuple() if depth < DEEPEST:
            return [_cut(each, depth + 1) for each in value]
        case None | bool():
            return value
        case int() | float() if abs(value) < 2**63:  # not for what is infinite, or no number
            return value
        case Mapping() | list() | tuple() | int() | float():
            return f"{type(value).__name__} left out"
    return _text(value)


def _text(value: Any, longest: int = LONGEST_TEXT) -> str:
    """What either database takes: no NUL, and no half of a character."""
    text = str(value)[: longest + 1].replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = text.encode(errors="replace").decode()
    return text if len(text) <= longest else text[: longest - 1] + "…"
