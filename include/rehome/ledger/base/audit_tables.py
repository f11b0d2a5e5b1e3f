"""Tables of the audit, which are append-only: see ``migrations/append_only.py``."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Index, Integer, String, Table

from rehome.ledger.base.models import METADATA, Serial, UtcDateTime

AUDIT = Table(
    "audit",
    METADATA,
    Column("audit_id", Serial, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("decision", String(40), nullable=False),
    Column("door", String(20), nullable=False),
    Column("user_id", String(250)),  # here and below: NULL: not known, or there is none
    Column("user_name", String(250)),
    Column("address", String(100)),
    Column("plan_id", String(200)),
    Column("dag_id", String(250)),
    Column("run_id", String(250)),
    Column("task_id", String(250)),
    Column("cluster_id", String(200)),
    Column("detail", JSON, nullable=False),
    Index("ix_audit_plan", "plan_id", "at"),
)

AUDIT_EXPORTS = Table(
    "audit_exports",
    METADATA,
    Column("export_id", Serial, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("by", String(250), nullable=False),
    Column("since", UtcDateTime),  # NULL: from the first row on
    Column("until", UtcDateTime, nullable=False),
    Column("audit_rows", Integer, nullable=False),
    Column("audit_last", BigInteger, nullable=False),  # the newest row that was there
    Column("events_rows", Integer, nullable=False),
    Column("events_last", BigInteger, nullable=False),
    # Whether rows that it covers may be removed: those of these times, up to the newest.
    Column("removes", Boolean, nullable=False),
    Column("digest", String(64), nullable=False, unique=True),  # SHA-256 of the file
)
