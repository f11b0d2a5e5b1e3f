"""What the newest poll of each plan has found that keeps it from going on as it should."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; no row: no poll of this version has seen the plan."""
    op.create_table(
        "plan_hurts",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("hurts", sa.JSON, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("plan_hurts")
