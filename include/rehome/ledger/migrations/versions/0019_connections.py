"""Which cluster a connection was last seen to lead to, so that a fleet is listed by name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table. It fills with the next snapshots."""
    op.create_table(
        "connections",
        sa.Column("connection", sa.String(250), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("seen_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    """Drop it: it fills again."""
    op.drop_table("connections")
