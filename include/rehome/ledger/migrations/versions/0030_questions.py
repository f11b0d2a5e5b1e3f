"""What people are asked and answer is rows, and so is what tasks have written to the warehouse."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the tables, empty: an approval from before has no question, and is asked for again."""
    op.create_table(
        "questions",
        sa.Column("question_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("dag_id", sa.String(250), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("task_id", sa.String(250), nullable=False),
        sa.Column("try_number", sa.Integer, nullable=False),
        sa.Column("ti_id", sa.String(40), nullable=False),
        sa.Column("terms", sa.JSON, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("shown", sa.JSON, nullable=False),
        sa.Column("plan_asked_by", sa.String(250), nullable=False),
        sa.Column("asked_by", sa.String(250)),
        sa.Column("terms_asked_by", sa.JSON, nullable=False),
        sa.Column("not_asked", sa.String(20)),
        sa.Column("shown_at", sa.DateTime, nullable=False),
        sa.Column("answer", sa.String(20)),
        sa.Column("answered_by_id", sa.String(250)),
        sa.Column("answered_by_name", sa.String(250)),
        sa.Column("answered_at", sa.DateTime),
        sa.Column("detail", sa.Text),
        sa.Column("recorded_at", sa.DateTime),
    )
    op.create_index("ix_questions_ti_id", "questions", ["ti_id"])
    op.create_index("ix_questions_plan", "questions", ["plan_id"])
    op.create_table(
        "dry_runs",
        sa.Column("dry_run_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
        sa.Column("dag_id", sa.String(250), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("tried_at", sa.DateTime, nullable=False),
        sa.Column("ok", sa.Boolean, nullable=False),
        sa.Column("rate_bytes_per_s", sa.BigInteger, nullable=False),
        sa.Column("rate_cause", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    op.create_index("ix_dry_runs_plan_id", "dry_runs", ["plan_id"])
    op.create_table(
        "recorded_files",
        sa.Column("file_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("recorded_at", sa.DateTime, nullable=False),
    )
    op.create_index("ix_recorded_files_plan_id", "recorded_files", ["plan_id"])


def downgrade() -> None:
    """Drop them: approvals are those of the plans' rows alone."""
    for table in ("recorded_files", "dry_runs", "questions"):
        op.drop_table(table)
