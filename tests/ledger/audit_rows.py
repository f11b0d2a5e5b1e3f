"""The rows of a ledger's audit, as tests read them: people export them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import select

from rehome.ledger.base.audit_entry import Decided, Door
from rehome.ledger.base.audit_tables import AUDIT
from rehome.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the audit.

    :param number: grows with each row, and is never used again.
    :param at: aware UTC.
    :param decision, door: the text as it stands where another version of Rehome has written it.
    """

    number: int
    at: datetime
    decision: Decided | str
    door: Door | str
    user_id: str | None
    user_name: str | None
    address: str | None
    plan_id: str | None
    dag_id: str | None
    run_id: str | None
    task_id: str | None
    cluster_id: str | None
    detail: Mapping[str, Any]


def audit_of(ledger: Ledger) -> list[AuditRow]:
    """All rows, oldest first."""
    with ledger.reading() as connection:
        rows = connection.execute(select(AUDIT).order_by(AUDIT.c.audit_id)).mappings().all()
    names = [each.name for each in fields(AuditRow) if each.name != "number"]
    found = []
    for row in rows:
        values = {name: row[name] for name in names}
        values["decision"] = _member_of(Decided, row["decision"])
        values["door"] = _member_of(Door, row["door"])
        found.append(AuditRow(row["audit_id"], **values))
    return found


def _member_of(kind: type[Decided] | type[Door], text: str) -> Any:
    return kind(text) if text in list(kind) else text
