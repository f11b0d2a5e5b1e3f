"""Alerts that were sent, so that none is sent twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table. What was sent before is in the events, and may be sent once more."""
    op.create_table(
        "alerts",
        sa.Column("kind", sa.String(40), primary_key=True),
        sa.Column("subject", sa.String(600), primary_key=True),
        sa.Column("occurrence", sa.String(600), nullable=False),
        sa.Column("plan_id", sa.String(200), index=True),
        sa.Column("cluster_id", sa.String(200)),
        sa.Column("first_raised_at", UtcDateTime, nullable=False),
        sa.Column("last_raised_at", UtcDateTime, nullable=False),
        sa.Column("closed_at", UtcDateTime),
        sa.Column("claimed_until", UtcDateTime),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("tried_at", UtcDateTime),
        sa.Column("times_sent", sa.Integer, nullable=False),
        sa.Column("failed_channels", sa.JSON, nullable=False),
        sa.Column("alert", sa.JSON, nullable=False),
    )


def downgrade() -> None:
    """Drop it: alerts of what lasts are sent once more."""
    op.drop_table("alerts")
