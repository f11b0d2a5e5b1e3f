"""Plans know when another client's reassignment was last seen to hold them up: that is no stall."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is not known for older plans."""
    op.add_column("plans", sa.Column("held_at", UtcDateTime))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("plans", "held_at")
