"""What each copy has received at each poll of the last minute; what each dry run predicted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both; no row, and NULL: no poll and no dry run of this version has seen the plan."""
    op.create_table(
        "copy_gains",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("at", UtcDateTime, primary_key=True),
        sa.Column("gains", sa.JSON, nullable=False),
    )
    with op.batch_alter_table("dry_runs") as table:
        table.add_column(sa.Column("moves", sa.Integer))
        table.add_column(sa.Column("least_s", sa.Float))
        table.add_column(sa.Column("most_s", sa.Float))


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("dry_runs") as table:
        for name in ("most_s", "least_s", "moves"):
            table.drop_column(name)
    op.drop_table("copy_gains")
