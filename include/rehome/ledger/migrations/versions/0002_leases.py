"""One lease per cluster: who may write to it, until when, and the epoch that fences off others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "leases",
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("owner", sa.String(300), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("leases")
