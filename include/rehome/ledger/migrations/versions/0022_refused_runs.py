"""Starts of watching know why their plan was refused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; runs that have ended before count as failed, as they did."""
    op.add_column("watch_starts", sa.Column("refusal", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    """Drop it: a refused plan is a failure like any other."""
    op.drop_column("watch_starts", "refusal")
