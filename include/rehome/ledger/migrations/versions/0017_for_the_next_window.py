"""Plans know when a person handed them over to the next maintenance window."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; no older plan was handed over."""
    op.add_column("plans", sa.Column("for_window_at", UtcDateTime))


def downgrade() -> None:
    """Drop it: such plans stay planned, and wait for a person."""
    op.drop_column("plans", "for_window_at")
