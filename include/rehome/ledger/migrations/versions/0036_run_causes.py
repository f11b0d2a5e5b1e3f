"""What ended or refused a run: one row for each attempt of a task that did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; of runs before it, it is not known what ended them."""
    op.create_table(
        "run_causes",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("task_id", sa.String(250), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("cleared", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("state_left", sa.Text, nullable=False),
        sa.Column("remedy", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("over_at", sa.DateTime),
        sa.Column("plan_id", sa.String(200)),
        sa.Column("connection", sa.String(250)),
    )
    op.create_index("ix_run_causes_plan", "run_causes", ["plan_id", "at"])
    op.create_index("ix_run_causes_at", "run_causes", ["at"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("run_causes")
