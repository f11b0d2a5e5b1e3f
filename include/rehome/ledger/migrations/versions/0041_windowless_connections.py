"""Which connections were seen to lead to a cluster without maintenance windows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; NULL: none was seen, so windows go on as they were."""
    op.add_column("connections", sa.Column("windowless_at", UtcDateTime))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("connections", "windowless_at")
