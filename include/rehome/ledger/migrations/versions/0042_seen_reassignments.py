"""Reassignments in flight of any client, and since when they are known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, empty: what is in flight is known since it is next seen."""
    op.create_table(
        "seen_reassignments",
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("topic", sa.String(249), primary_key=True),
        sa.Column("partition", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seen_id", sa.String(32), nullable=False),
        sa.Column("topic_id", sa.String(40), nullable=False),
        sa.Column("replicas", sa.JSON, nullable=False),
        sa.Column("adding", sa.JSON, nullable=False),
        sa.Column("removing", sa.JSON, nullable=False),
        sa.Column("first_seen_at", UtcDateTime, nullable=False),
        sa.Column("first_leader", sa.Integer),
        sa.Column("read_at", UtcDateTime, nullable=False),
        sa.Column("bytes_in_place", sa.BigInteger),
        sa.Column("rate_bytes_per_s", sa.Float),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("seen_reassignments")
