"""The first ledger: plans, moves, reassignments, throttles, progress, events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "plans",
        sa.Column("plan_id", sa.String(200), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("active_cluster_id", sa.String(200), unique=True),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("plan_hash", sa.String(64), nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("plan_dir", sa.Text, nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("actor", sa.String(250), nullable=False),
        sa.Column("approved_by", sa.String(250)),
        sa.Column("bytes_total", sa.BigInteger, nullable=False),
        sa.Column("rate_bytes_per_s", sa.BigInteger),
        sa.Column("requested_rate_bytes_per_s", sa.BigInteger),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("pause_requested", sa.Boolean, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("approved_at", UtcDateTime),
        sa.Column("started_at", UtcDateTime),
        sa.Column("last_progress_at", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
    )
    op.create_index("ix_plans_cluster_id", "plans", ["cluster_id"])
    op.create_table(
        "moves",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("topic", sa.String(249), primary_key=True),
        sa.Column("partition", sa.Integer, primary_key=True),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("bytes_to_move", sa.BigInteger, nullable=False),
        sa.Column("changed_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "reassignments",
        sa.Column("reassignment_id", sa.String(32), primary_key=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
        sa.Column("topic", sa.String(249), nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("first_leader", sa.Integer),
        sa.Column("replicas_before", sa.JSON, nullable=False),
        sa.Column("replicas_target", sa.JSON, nullable=False),
        sa.Column("rate_bytes_per_s", sa.BigInteger),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("outcome", sa.String(20)),
        sa.Column("detail", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["plan_id", "topic", "partition"],
            ["moves.plan_id", "moves.topic", "moves.partition"],
        ),
    )
    op.create_index(
        "ix_reassignments_partition", "reassignments", ["plan_id", "topic", "partition"]
    )
    op.create_table(
        "throttle_entries",
        sa.Column("entry_id", _serial, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), nullable=False),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("resource_type", sa.String(20), nullable=False),
        sa.Column("resource_name", sa.String(249), nullable=False),
        sa.Column("key", sa.String(100), nullable=False),
        sa.Column("ours", sa.JSON, nullable=False),
        sa.Column("prior_value", sa.Text),
        sa.Column("prior_source", sa.String(60), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("changed_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("plan_id", "resource_type", "resource_name", "key"),
    )
    op.create_index("ix_throttle_entries_cluster_id", "throttle_entries", ["cluster_id"])
    op.create_table(
        "progress_samples",
        sa.Column("sample_id", _serial, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), nullable=False),
        sa.Column("sampled_at", UtcDateTime, nullable=False),
        sa.Column("bytes_done", sa.BigInteger, nullable=False),
        sa.Column("bytes_total", sa.BigInteger, nullable=False),
        sa.Column("moves_done", sa.Integer, nullable=False),
        sa.Column("moves_total", sa.Integer, nullable=False),
        sa.Column("in_flight", sa.Integer, nullable=False),
        sa.Column("messages_behind", sa.BigInteger, nullable=False),
        sa.Column("rate_bytes_per_s", sa.Float),
        sa.Column("eta_s", sa.Float),
    )
    op.create_index("ix_progress_samples_plan", "progress_samples", ["plan_id", "sampled_at"])
    op.create_table(
        "replica_statuses",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("topic", sa.String(249), primary_key=True),
        sa.Column("partition", sa.Integer, primary_key=True),
        sa.Column("broker", sa.Integer, primary_key=True),
        sa.Column("standing", sa.String(20), nullable=False),
        sa.Column("status_at", UtcDateTime, nullable=False),
        sa.Column("last_in_isr_at", UtcDateTime),
        sa.Column("messages_behind", sa.BigInteger),
        sa.Column("max_messages_behind", sa.BigInteger),
        sa.Column("bytes_behind", sa.BigInteger),
        sa.Column("size_bytes", sa.BigInteger),
    )
    op.create_table(
        "events",
        sa.Column("event_id", _serial, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200)),
        sa.Column("cluster_id", sa.String(200)),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("actor", sa.String(250), nullable=False),
        sa.Column("kind", sa.String(60), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("ix_events_plan_id", "events", ["plan_id"])


def downgrade() -> None:
    """Drop every table, children first."""
    for table in (
        "events",
        "replica_statuses",
        "progress_samples",
        "throttle_entries",
        "reassignments",
        "moves",
        "plans",
    ):
        op.drop_table(table)
