"""Rates of single brokers, and how many moves may run at once, as asked for in mid-run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; NULL: nothing was asked for, no broker had a rate of its own."""
    op.add_column("plans", sa.Column("requested_rates_by_broker", sa.JSON(none_as_null=True)))
    op.add_column("plans", sa.Column("requested_moves_per_broker", sa.Integer))
    op.add_column("rate_changes", sa.Column("own", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("rate_changes", "own")
    op.drop_column("plans", "requested_moves_per_broker")
    op.drop_column("plans", "requested_rates_by_broker")
