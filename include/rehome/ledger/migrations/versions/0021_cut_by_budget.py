"""Plans know whether their budget leaves something, and starts of watching the plan they led to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what older plans have left is gone on with by no later heal."""
    cut = sa.Column("cut_by_budget", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("plans", cut)
    op.add_column("watch_starts", sa.Column("plan_id", sa.String(200)))


def downgrade() -> None:
    """Drop them: a finding is answered by one plan, whatever that has left."""
    op.drop_column("watch_starts", "plan_id")
    op.drop_column("plans", "cut_by_budget")
