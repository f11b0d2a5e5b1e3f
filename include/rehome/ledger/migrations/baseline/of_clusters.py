"""Tables of the baseline of clusters, runs, alerts and the audit: later migrations change them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from rehome.ledger.base.models import UtcDateTime

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""A number that the database counts."""


def create_tables_of_clusters() -> None:
    """Create them, parents first."""
    op.create_table(
        "alerts",
        sa.Column("kind", sa.String(40), primary_key=True),
        sa.Column("subject", sa.String(600), primary_key=True),
        sa.Column("occurrence", sa.String(600), nullable=False),
        sa.Column("plan_id", sa.String(200)),
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
        sa.Column("message_id", sa.String(40)),
    )
    op.create_index("ix_alerts_plan_id", "alerts", ["plan_id"])
    op.create_table(
        "audit",
        sa.Column("audit_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("decision", sa.String(40), nullable=False),
        sa.Column("door", sa.String(20), nullable=False),
        sa.Column("user_id", sa.String(250)),
        sa.Column("user_name", sa.String(250)),
        sa.Column("address", sa.String(100)),
        sa.Column("plan_id", sa.String(200)),
        sa.Column("dag_id", sa.String(250)),
        sa.Column("run_id", sa.String(250)),
        sa.Column("task_id", sa.String(250)),
        sa.Column("cluster_id", sa.String(200)),
        sa.Column("detail", sa.JSON, nullable=False),
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_index("ix_audit_plan", "audit", ["plan_id", "at"])
    op.create_table(
        "audit_exports",
        sa.Column("export_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("by", sa.String(250), nullable=False),
        sa.Column("since", UtcDateTime),
        sa.Column("until", UtcDateTime, nullable=False),
        sa.Column("audit_rows", sa.Integer, nullable=False),
        sa.Column("audit_last", sa.BigInteger, nullable=False),
        sa.Column("events_rows", sa.Integer, nullable=False),
        sa.Column("events_last", sa.BigInteger, nullable=False),
        sa.Column("removes", sa.Boolean, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.UniqueConstraint("digest"),
    )
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
    op.create_table(
        "carried_out_requests",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("clear_number", sa.Integer, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "connections",
        sa.Column("connection", sa.String(250), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("seen_at", UtcDateTime, nullable=False),
        sa.Column("policy", sa.JSON(none_as_null=True)),
        sa.Column("windowless_at", UtcDateTime),
    )
    op.create_table(
        "events",
        sa.Column("event_id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("plan_id", sa.String(200)),
        sa.Column("cluster_id", sa.String(200)),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("actor", sa.String(250), nullable=False),
        sa.Column("kind", sa.String(60), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("ix_events_plan_id", "events", ["plan_id"])
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
        sa.Column("began", sa.JSON(none_as_null=True)),
    )
    op.create_table(
        "identity",
        sa.Column("ledger_id", sa.String(32), primary_key=True),
    )
    op.create_table(
        "leases",
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("owner", sa.String(300), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "not_watched",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "requested_runs",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("conf", sa.JSON, nullable=False),
        sa.Column("door", sa.String(20), nullable=False),
        sa.Column("asked_by", sa.String(250)),
        sa.Column("by_dag_id", sa.String(250), nullable=False),
        sa.Column("by_run_id", sa.String(250), nullable=False),
        sa.Column("by_task_id", sa.String(250), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("begun_by", UtcDateTime),
    )
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
    op.create_table(
        "taken_snapshots",
        sa.Column("name", sa.String(500), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("connection", sa.String(250), nullable=False),
        sa.Column("taken_at", UtcDateTime, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("dag_id", sa.String(250), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("task_id", sa.String(250), nullable=False),
    )
    op.create_index("ix_taken_snapshots_cluster", "taken_snapshots", ["cluster_id", "taken_at"])
    op.create_index("ix_taken_snapshots_run", "taken_snapshots", ["dag_id", "run_id", "task_id"])
    op.create_table(
        "watched_clusters",
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("judged_at", UtcDateTime, nullable=False),
    )
