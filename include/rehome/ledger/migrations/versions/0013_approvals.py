"""Approvals say what they are of, besides the plan: rate, window, and until when they hold."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is not known for older approvals."""
    op.add_column("plans", sa.Column("approval", sa.JSON))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("plans", "approval")
