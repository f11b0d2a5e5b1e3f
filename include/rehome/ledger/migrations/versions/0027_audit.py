"""The audit, its exports, and triggers that make them and the events append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.migrations import append_only

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables, empty: who decided what before is in the events, without an address."""
    serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "audit",
        sa.Column("audit_id", serial, primary_key=True, autoincrement=True),
        sa.Column("at", sa.DateTime, nullable=False, index=True),
        sa.Column("decision", sa.String(40), nullable=False),
        sa.Column("door", sa.String(20), nullable=False),
        sa.Column("user_id", sa.String(250)),
        sa.Column("user_name", sa.String(250)),
        sa.Column("address", sa.String(100)),
        sa.Column("plan_id", sa.String(200)),
        sa.Column("dag_id", sa.String(250)),
        sa.Column("run_id", sa.String(250)),
        sa.Column("task_id", sa.String(250)),
        sa.Column("cluster_id", sa.String(200)),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Index("ix_audit_plan", "plan_id", "at"),
    )
    op.create_table(
        "audit_exports",
        sa.Column("export_id", serial, primary_key=True, autoincrement=True),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("by", sa.String(250), nullable=False),
        sa.Column("since", sa.DateTime),
        sa.Column("until", sa.DateTime, nullable=False),
        sa.Column("audit_rows", sa.Integer, nullable=False),
        sa.Column("audit_last", sa.BigInteger, nullable=False),
        sa.Column("events_rows", sa.Integer, nullable=False),
        sa.Column("events_last", sa.BigInteger, nullable=False),
        sa.Column("removes", sa.Boolean, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
    )
    for table in append_only.NUMBERS:
        append_only.create(op.get_bind(), table)


def downgrade() -> None:
    """Drop them, and what they hold: export it first."""
    for table in append_only.NUMBERS:
        append_only.drop(op.get_bind(), table)
    op.drop_table("audit_exports")
    op.drop_table("audit")
