"""Samples tell what the busiest broker lacks, and the throttle of their time: the ETA's basis."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_COLUMNS = ("busiest_bytes", "throttle_bytes_per_s")


def upgrade() -> None:
    """Add both columns; older samples do not know."""
    for name in _COLUMNS:
        op.add_column("progress_samples", sa.Column(name, sa.BigInteger))


def downgrade() -> None:
    """Drop them."""
    for name in _COLUMNS:
        op.drop_column("progress_samples", name)
