"""Cancels that are refused: since when, how often they were asked, and the last answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, empty: what a plan that is being stopped is refused is counted from now."""
    op.add_column("plans", sa.Column("refused_cancels", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("plans", "refused_cancels")
