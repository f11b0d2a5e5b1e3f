"""What watching has found in clusters, from one snapshot to the next."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables; they fill with the next snapshots."""
    op.create_table(
        "findings",
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("kind", sa.String(40), primary_key=True),
        sa.Column("subject", sa.String(600), primary_key=True),
        sa.Column("first_seen_at", UtcDateTime, nullable=False),
        sa.Column("last_seen_at", UtcDateTime, nullable=False),
        sa.Column("judged_at", UtcDateTime, nullable=False),
        sa.Column("seen", sa.Integer, nullable=False),
        sa.Column("clean", sa.Integer, nullable=False),
        sa.Column("opened_at", UtcDateTime),
        sa.Column("closed_at", UtcDateTime),
        sa.Column("facts", sa.JSON, nullable=False),
    )
    op.create_table(
        "watched_clusters",
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("judged_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "watch_starts",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False, index=True),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(600), nullable=False),
        sa.Column("opened_at", UtcDateTime, nullable=False),
        sa.Column("policy", sa.String(20), nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("deadline", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("failed", sa.Boolean),
    )


def downgrade() -> None:
    """Drop them: findings open again by later snapshots."""
    op.drop_table("watch_starts")
    op.drop_table("watched_clusters")
    op.drop_table("findings")
