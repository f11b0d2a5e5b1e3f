"""What brokers copied at each poll, and every rate that was set on them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "flow_samples",
        sa.Column("sample_id", _serial, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), nullable=False),
        sa.Column("since", UtcDateTime, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("busiest_bytes_per_s", sa.Float, nullable=False),
        sa.Column("flows", sa.JSON(none_as_null=True)),
        sa.Column("outside_isr", sa.BigInteger),
        sa.Column("messages_behind", sa.BigInteger),
    )
    op.create_index("ix_flow_samples_plan", "flow_samples", ["plan_id", "at"])
    op.create_table(
        "rate_changes",
        sa.Column("change_id", _serial, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("rate_bytes_per_s", sa.BigInteger, nullable=False),
        sa.Column("target_bytes_per_s", sa.BigInteger, nullable=False),
        sa.Column("limit_bytes_per_s", sa.BigInteger, nullable=False),
        sa.Column("delivered_bytes_per_s", sa.Float),
        sa.Column("reason", sa.String(20), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
    )
    op.create_index("ix_rate_changes_plan_id", "rate_changes", ["plan_id"])


def downgrade() -> None:
    """Drop both."""
    op.drop_table("rate_changes")
    op.drop_table("flow_samples")
