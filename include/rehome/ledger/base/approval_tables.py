"""Tables of the ledger by which an approval, or the end of a task, counts."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from rehome.ledger.base.models import METADATA, UtcDateTime

_Serial = BigInteger().with_variant(Integer, "sqlite")

QUESTIONS = Table(
    "questions",
    METADATA,
    Column("question_id", _Serial, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), nullable=False),  # or the id of new partitions
    Column("cluster_id", String(200), nullable=False),
    Column("dag_id", String(250), nullable=False),
    Column("run_id", String(250), nullable=False),
    Column("task_id", String(250), nullable=False),
    Column("try_number", Integer, nullable=False),
    Column("ti_id", String(40), nullable=False, index=True),
    Column("terms", JSON, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("shown", JSON, nullable=False),
    Column("plan_asked_by", String(250), nullable=False),
    Column("run_asked_by", String(250)),  # of the run that asks; NULL: it is not known
    Column("terms_asked_by", JSON, nullable=False),
    Column("not_asked", String(20)),  # NULL: a person was asked
    Column("shown_at", UtcDateTime, nullable=False),
    # Written once, in one transaction with what follows from it: triggers see to that, see
    # include/rehome/ledger/migrations/written_once.py.
    Column("answer", String(20)),
    Column("answered_by_id", String(250)),
    Column("answered_by_name", String(250)),
    Column("answered_at", UtcDateTime),  # as Airflow has recorded it
    Column("detail", Text),
    Column("recorded_at", UtcDateTime),
    Index("ix_questions_plan", "plan_id"),
)

DRY_RUNS = Table(
    "dry_runs",
    METADATA,
    Column("dry_run_id", _Serial, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), nullable=False, index=True),
    Column("dag_id", String(250), nullable=False),
    Column("run_id", String(250), nullable=False),
    Column("tried_at", UtcDateTime, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("rate_bytes_per_s", BigInteger, nullable=False),
    Column("rate_cause", Text, nullable=False),
    Column("digest", String(64), nullable=False),  # SHA-256 of dry_run.json
    Column("moves", Integer),  # that it has tried out; NULL: not known
    Column("least_s", Float),  # predicted time; NULL with moves: they would never end
    Column("most_s", Float),
)

RECORDED_FILES = Table(
    "recorded_files",
    METADATA,
    Column("file_id", _Serial, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), nullable=False, index=True),
    Column("name", String(100), nullable=False),
    Column("digest", String(64), nullable=False),  # SHA-256 of its bytes when it was written
    Column("recorded_at", UtcDateTime, nullable=False),
)
