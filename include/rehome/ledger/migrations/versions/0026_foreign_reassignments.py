"""What was reassigned while a plan ran is rows; the events that report it are for people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, empty: a plan that runs reports what it finds once more."""
    op.create_table(
        "foreign_reassignments",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("topic", sa.String(249), nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("replicas_target", sa.JSON, nullable=False),
    )


def downgrade() -> None:
    """Drop it: the events tell them apart by their text again."""
    op.drop_table("foreign_reassignments")
