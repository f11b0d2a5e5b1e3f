"""The pace is measured from what brokers copied, and of that it is known who did not answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Samples of progress need no throttle any more; older ones of flows do not know."""
    op.add_column("flow_samples", sa.Column("silent", sa.JSON(none_as_null=True)))
    op.drop_column("progress_samples", "throttle_bytes_per_s")


def downgrade() -> None:
    """The other way round; what the throttle was is not known."""
    op.drop_column("flow_samples", "silent")
    op.add_column("progress_samples", sa.Column("throttle_bytes_per_s", sa.BigInteger))
