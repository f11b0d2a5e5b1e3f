"""A cluster is its id: what every entry and connection is bound to, and the policies of then."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them. Bindings are made at the first use; what connections led to before counts then."""
    op.create_table(
        "bindings",
        sa.Column("kind", sa.String(20), primary_key=True),
        sa.Column("name", sa.String(250), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("bound_at", UtcDateTime, nullable=False),
        sa.Column("bound_by", sa.String(250), nullable=False),
        sa.Column("read_by", sa.Text, nullable=False),
    )
    op.create_table(
        "broker_racks",
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("broker", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("rack", sa.Text, nullable=False),
    )
    op.add_column("connections", sa.Column("policy", sa.JSON))
    op.add_column("plans", sa.Column("policy", sa.JSON))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("plans", "policy")
    op.drop_column("connections", "policy")
    op.drop_table("broker_racks")
    op.drop_table("bindings")
