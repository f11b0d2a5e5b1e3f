"""Tables of the baseline of plans and of what is known of each: migrations after it change them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""A number that the database counts."""


def create_tables_of_plans() -> None:
    """Create them, parents first."""
    op.create_table(
        "dry_runs",
        sa.Column("dry_run_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
        sa.Column("dag_id", sa.String(250), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("tried_at", UtcDateTime, nullable=False),
        sa.Column("ok", sa.Boolean, nullable=False),
        sa.Column("rate_bytes_per_s", sa.BigInteger, nullable=False),
        sa.Column("rate_cause", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("moves", sa.Integer),
        sa.Column("least_s", sa.Float),
        sa.Column("most_s", sa.Float),
    )
    op.create_index("ix_dry_runs_plan_id", "dry_runs", ["plan_id"])
    op.create_table(
        "plans",
        sa.Column("plan_id", sa.String(200), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("active_cluster_id", sa.String(200)),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("plan_hash", sa.String(64), nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("plan_dir", sa.Text, nullable=False),
        sa.Column("dag_id", sa.String(250)),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("actor", sa.String(250), nullable=False),
        sa.Column("planned_through", sa.String(250)),
        sa.Column("policy", sa.JSON(none_as_null=True)),
        sa.Column("approved_by", sa.String(250)),
        sa.Column("approval", sa.JSON(none_as_null=True)),
        sa.Column("terms_asked_by", sa.JSON(none_as_null=True)),
        sa.Column("bytes_total", sa.BigInteger, nullable=False),
        sa.Column("rate_bytes_per_s", sa.BigInteger),
        sa.Column("requested_rate_bytes_per_s", sa.BigInteger),
        sa.Column("requested_rates_by_broker", sa.JSON(none_as_null=True)),
        sa.Column("requested_moves_per_broker", sa.Integer),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("pause_requested", sa.Boolean, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("approved_at", UtcDateTime),
        sa.Column("started_at", UtcDateTime),
        sa.Column("last_progress_at", UtcDateTime),
        sa.Column("moves_version", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("held_at", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("for_window_at", UtcDateTime),
        sa.Column("end_reason", sa.String(20)),
        sa.Column("cut_by_budget", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("refused_cancels", sa.JSON(none_as_null=True)),
        sa.Column("bytes_taken_back", sa.BigInteger),
        sa.UniqueConstraint("active_cluster_id"),
    )
    op.create_index("ix_plans_cluster_id", "plans", ["cluster_id"])
    op.create_table(
        "questions",
        sa.Column("question_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("dag_id", sa.String(250), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("task_id", sa.String(250), nullable=False),
        sa.Column("try_number", sa.Integer, nullable=False),
        sa.Column("ti_id", sa.String(40), nullable=False),
        sa.Column("terms", sa.JSON, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("shown", sa.JSON, nullable=False),
        sa.Column("plan_asked_by", sa.String(250), nullable=False),
        sa.Column("run_asked_by", sa.String(250)),
        sa.Column("terms_asked_by", sa.JSON, nullable=False),
        sa.Column("not_asked", sa.String(20)),
        sa.Column("shown_at", UtcDateTime, nullable=False),
        sa.Column("answer", sa.String(20)),
        sa.Column("answered_by_id", sa.String(250)),
        sa.Column("answered_by_name", sa.String(250)),
        sa.Column("answered_at", UtcDateTime),
        sa.Column("detail", sa.Text),
        sa.Column("recorded_at", UtcDateTime),
    )
    op.create_index("ix_questions_plan", "questions", ["plan_id"])
    op.create_index("ix_questions_ti_id", "questions", ["ti_id"])
    op.create_table(
        "recorded_files",
        sa.Column("file_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("recorded_at", UtcDateTime, nullable=False),
    )
    op.create_index("ix_recorded_files_plan_id", "recorded_files", ["plan_id"])
    op.create_table(
        "run_causes",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("task_id", sa.String(250), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("cleared", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("state_left", sa.Text, nullable=False),
        sa.Column("remedy", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("over_at", UtcDateTime),
        sa.Column("plan_id", sa.String(200)),
        sa.Column("connection", sa.String(250)),
    )
    op.create_index("ix_run_causes_at", "run_causes", ["at"])
    op.create_index("ix_run_causes_plan", "run_causes", ["plan_id", "at"])
    op.create_table(
        "taken_up_plans",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
    )
    op.create_table(
        "watch_starts",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(600), nullable=False),
        sa.Column("opened_at", UtcDateTime, nullable=False),
        sa.Column("policy", sa.String(20), nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("deadline", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("failed", sa.Boolean),
        sa.Column("plan_id", sa.String(200)),
    )
    op.create_index("ix_watch_starts_cluster_id", "watch_starts", ["cluster_id"])
    op.create_table(
        "copy_gains",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("at", UtcDateTime, primary_key=True),
        sa.Column("gains", sa.JSON, nullable=False),
    )
    op.create_table(
        "flow_samples",
        sa.Column("sample_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), nullable=False),
        sa.Column("since", UtcDateTime, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("busiest_bytes_per_s", sa.Float, nullable=False),
        sa.Column("flows", sa.JSON(none_as_null=True)),
        sa.Column("silent", sa.JSON(none_as_null=True)),
        sa.Column("outside_isr", sa.BigInteger),
        sa.Column("messages_behind", sa.BigInteger),
    )
    op.create_index("ix_flow_samples_plan", "flow_samples", ["plan_id", "at"])
    op.create_table(
        "foreign_reassignments",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("topic", sa.String(249), nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("replicas_target", sa.JSON, nullable=False),
    )
    op.create_table(
        "moves",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("topic", sa.String(249), primary_key=True),
        sa.Column("partition", sa.Integer, primary_key=True),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("bytes_to_move", sa.BigInteger, nullable=False),
        sa.Column("changed_at", UtcDateTime, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("replicas_current", sa.JSON(none_as_null=True)),
        sa.Column("replicas_target", sa.JSON(none_as_null=True)),
        sa.Column("log_dirs_current", sa.JSON(none_as_null=True)),
        sa.Column("log_dirs_target", sa.JSON(none_as_null=True)),
        sa.Column("size_bytes", sa.BigInteger),
        sa.Column("reason", sa.String(20)),
        sa.Column("topic_id", sa.String(40)),
        sa.Column("bytes_in_place", sa.BigInteger),
    )
    op.create_index(
        "ix_moves_state", "moves", ["plan_id", "state", "bytes_to_move", "bytes_in_place"]
    )
    op.create_index("ix_moves_version", "moves", ["plan_id", "version"])
    op.create_table(
        "plan_hurts",
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), primary_key=True),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("hurts", sa.JSON, nullable=False),
    )
    op.create_table(
        "progress_samples",
        sa.Column("sample_id", _SERIAL, primary_key=True, autoincrement=True),
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
        sa.Column("busiest_bytes", sa.BigInteger),
        sa.Column("received_bytes", sa.BigInteger),
        sa.Column("grown_bytes", sa.BigInteger),
        sa.Column("shrunk_bytes", sa.BigInteger),
    )
    op.create_index("ix_progress_samples_plan", "progress_samples", ["plan_id", "sampled_at"])
    op.create_table(
        "rate_changes",
        sa.Column("change_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200), sa.ForeignKey("plans.plan_id"), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("rate_bytes_per_s", sa.BigInteger, nullable=False),
        sa.Column("target_bytes_per_s", sa.BigInteger, nullable=False),
        sa.Column("limit_bytes_per_s", sa.BigInteger, nullable=False),
        sa.Column("delivered_bytes_per_s", sa.Float),
        sa.Column("reason", sa.String(20), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("own", sa.JSON(none_as_null=True)),
    )
    op.create_index("ix_rate_changes_plan_id", "rate_changes", ["plan_id"])
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
    op.create_index("ix_replica_statuses_at", "replica_statuses", ["plan_id", "status_at"])
    op.create_table(
        "throttle_entries",
        sa.Column("entry_id", _SERIAL, primary_key=True, autoincrement=True),
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
        sa.Column("set_by", sa.String(20), nullable=False),
        sa.Column("times_gone", sa.Integer, nullable=False),
        sa.Column("times_alerted", sa.Integer, nullable=False),
        sa.Column("changed_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("plan_id", "resource_type", "resource_name", "key"),
    )
    op.create_index("ix_throttle_entries_cluster_id", "throttle_entries", ["cluster_id"])
    op.create_table(
        "reassignments",
        sa.Column("reassignment_id", sa.String(32), primary_key=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
        sa.Column("topic", sa.String(249), nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("topic_id", sa.String(40)),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("first_leader", sa.Integer),
        sa.Column("replicas_before", sa.JSON, nullable=False),
        sa.Column("replicas_target", sa.JSON, nullable=False),
        sa.Column("rate_bytes_per_s", sa.BigInteger),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("outcome", sa.String(20)),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("high_watermark", sa.BigInteger),
        sa.Column("leader_epoch", sa.Integer),
        sa.Column("lost_from", sa.BigInteger),
        sa.Column("lost_until", sa.BigInteger),
        sa.ForeignKeyConstraint(
            ["plan_id", "topic", "partition"], ["moves.plan_id", "moves.topic", "moves.partition"]
        ),
    )
    op.create_index("ix_reassignments_lost", "reassignments", ["plan_id", "lost_from"])
    op.create_index(
        "ix_reassignments_partition", "reassignments", ["plan_id", "topic", "partition"]
    )
