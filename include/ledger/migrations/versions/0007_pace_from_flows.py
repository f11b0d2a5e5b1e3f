"""The pace is measured from what brokers copied (flow_samples): samples need no throttle."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the column."""
    op.drop_column("progress_samples", "throttle_bytes_per_s")


def downgrade() -> None:
    """Add it; nobody knows what it held."""
    op.add_column("progress_samples", sa.Column("throttle_bytes_per_s", sa.BigInteger))
