"""Tables of the ledger. Times are UTC; sizes in bytes; lists of brokers and dirs are JSON.

The migrations in ``include/rehome/ledger/migrations`` build them; a test compares the two.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
)


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC times, also where the database keeps none of the zone (SQLite)."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To naive UTC."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """From naive UTC."""
        return None if value is None else value.replace(tzinfo=UTC)


METADATA = MetaData()
Serial = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts INTEGER keys only

PLANS = Table(
    "plans",
    METADATA,
    Column("plan_id", String(200), primary_key=True),
    Column("cluster_id", String(200), nullable=False, index=True),
    # The cluster's id while the plan is active, else NULL: at most one active plan per cluster.
    Column("active_cluster_id", String(200), unique=True),
    Column("state", String(20), nullable=False),
    Column("cause", Text, nullable=False),
    Column("action", String(40), nullable=False),
    Column("plan_hash", String(64), nullable=False),
    Column("request", JSON, nullable=False),
    Column("plan_dir", Text, nullable=False),
    Column("dag_id", String(250)),  # of the run; NULL: not known
    Column("run_id", String(250), nullable=False),
    Column("actor", String(250), nullable=False),
    Column("planned_through", String(250)),  # a connection; NULL: not known
    # What that connection's policy said of pace and approval then; NULL: not known.
    Column("policy", JSON(none_as_null=True)),
    Column("approved_by", String(250)),
    Column("approval", JSON(none_as_null=True)),  # what it is of, and until when it holds
    # Who has asked for a term that is not the plan's own, by the term; NULL: nobody.
    Column("terms_asked_by", JSON(none_as_null=True)),
    Column("bytes_total", BigInteger, nullable=False),
    Column("rate_bytes_per_s", BigInteger),
    Column("requested_rate_bytes_per_s", BigInteger),
    # Of brokers that are to have one of their own; NULL: none were asked for in mid-run.
    Column("requested_rates_by_broker", JSON(none_as_null=True)),
    Column("requested_moves_per_broker", Integer),  # at once; NULL: likewise
    Column("cancel_requested", Boolean, nullable=False),
    Column("pause_requested", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("approved_at", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("last_progress_at", UtcDateTime),
    Column("moves_version", BigInteger, nullable=False, server_default="0"),
    Column("held_at", UtcDateTime),  # by another client's reassignment, at the last such poll
    Column("ended_at", UtcDateTime),
    Column("for_window_at", UtcDateTime),  # handed over to the next window; NULL: it was not
    Column("end_reason", String(20)),  # where it is decided by; the cause is for people
    # Whether its budget leaves something of what was asked.
    Column("cut_by_budget", Boolean, nullable=False, server_default=false()),
    # Moves in flight that could not be cancelled: since when, how often asked, the last answer.
    Column("refused_cancels", JSON(none_as_null=True)),
    # Of copies that were cancelled, as last read; NULL: an earlier Rehome recorded the plan.
    Column("bytes_taken_back", BigInteger),
    Column("rehome_version", String(40)),  # that has made the plan; NULL: one before it was kept
)

TAKEN_UP_PLANS = Table(
    "taken_up_plans",
    METADATA,
    Column("dag_id", String(250), primary_key=True),
    Column("run_id", String(250), primary_key=True),
    Column("plan_id", String(200), nullable=False),  # that the run took up last
)

FOREIGN_REASSIGNMENTS = Table(
    "foreign_reassignments",
    METADATA,
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),  # in the order of reports
    Column("topic", String(249), nullable=False),
    Column("partition", Integer, nullable=False),
    Column("replicas_target", JSON, nullable=False),
)

IDENTITY = Table(
    "identity",
    METADATA,
    Column("ledger_id", String(32), primary_key=True),  # one row: which ledger this is
)

LEASES = Table(
    "leases",
    METADATA,
    Column("cluster_id", String(200), primary_key=True),
    Column("owner", String(300), nullable=False),  # empty: given back
    Column("epoch", BigInteger, nullable=False),  # grows with every owner: the fencing token
    Column("expires_at", UtcDateTime, nullable=False),
)

MOVES = Table(
    "moves",
    METADATA,
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), primary_key=True),
    Column("topic", String(249), primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("state", String(20), nullable=False),
    Column("detail", Text, nullable=False),
    Column("bytes_to_move", BigInteger, nullable=False),
    Column("changed_at", UtcDateTime, nullable=False),
    # The plan's moves_version after its state last changed: later ones are what is new.
    Column("version", BigInteger, nullable=False, server_default="0"),
    # As planned, and never changed; NULL: recorded before the ledger knew.
    Column("replicas_current", JSON(none_as_null=True)),
    Column("replicas_target", JSON(none_as_null=True)),
    Column("log_dirs_current", JSON(none_as_null=True)),
    Column("log_dirs_target", JSON(none_as_null=True)),
    Column("size_bytes", BigInteger),
    Column("reason", String(20)),
    Column("topic_id", String(40)),
    # What its copies hold, as last read before it was done; NULL: it is not done, or not known.
    Column("bytes_in_place", BigInteger),
    Index("ix_moves_state", "plan_id", "state", "bytes_to_move", "bytes_in_place"),
    Index("ix_moves_version", "plan_id", "version"),
)

REASSIGNMENTS = Table(
    "reassignments",
    METADATA,
    Column("reassignment_id", String(32), primary_key=True),
    Column("plan_id", String(200), nullable=False),
    Column("topic", String(249), nullable=False),
    Column("partition", Integer, nullable=False),
    Column("topic_id", String(40)),  # the topic's own: another one may get its name
    Column("started_at", UtcDateTime, nullable=False),
    Column("sent_at", UtcDateTime),  # the controller accepted it
    Column("first_leader", Integer),
    Column("replicas_before", JSON, nullable=False),
    Column("replicas_target", JSON, nullable=False),
    Column("rate_bytes_per_s", BigInteger),
    Column("ended_at", UtcDateTime),
    Column("outcome", String(20)),
    Column("detail", Text, nullable=False),
    # Of the leader, at the last poll that could read it; NULL: none could.
    Column("high_watermark", BigInteger),
    Column("leader_epoch", Integer),
    # Offsets, the second one exclusive, that were there and are gone; NULL: none that is known of.
    Column("lost_from", BigInteger),
    Column("lost_until", BigInteger),
    ForeignKeyConstraint(
        ["plan_id", "topic", "partition"], ["moves.plan_id", "moves.topic", "moves.partition"]
    ),
    Index("ix_reassignments_partition", "plan_id", "topic", "partition"),
    Index("ix_reassignments_lost", "plan_id", "lost_from"),
)

THROTTLE_ENTRIES = Table(
    "throttle_entries",
    METADATA,
    Column("entry_id", Serial, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False),
    Column("cluster_id", String(200), nullable=False, index=True),
    Column("resource_type", String(20), nullable=False),
    Column("resource_name", String(249), nullable=False),
    Column("key", String(100), nullable=False),
    Column("ours", JSON, nullable=False),  # list items added, or every value set
    Column("prior_value", Text),  # NULL: the key was not set
    Column("prior_source", String(60), nullable=False),
    Column("state", String(20), nullable=False),
    Column("detail", Text, nullable=False),
    Column("set_by", String(20), nullable=False),  # whose value the last reading showed
    Column("times_gone", Integer, nullable=False),  # while something in flight relied on it
    Column("times_alerted", Integer, nullable=False),
    Column("changed_at", UtcDateTime, nullable=False),
    UniqueConstraint("plan_id", "resource_type", "resource_name", "key"),
)

PROGRESS_SAMPLES = Table(
    "progress_samples",
    METADATA,
    Column("sample_id", Serial, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False),
    Column("sampled_at", UtcDateTime, nullable=False),
    Column("bytes_done", BigInteger, nullable=False),
    Column("bytes_total", BigInteger, nullable=False),
    Column("moves_done", Integer, nullable=False),
    Column("moves_total", Integer, nullable=False),
    Column("in_flight", Integer, nullable=False),
    Column("messages_behind", BigInteger, nullable=False),
    Column("rate_bytes_per_s", Float),
    Column("eta_s", Float),
    Column("busiest_bytes", BigInteger),
    Column("received_bytes", BigInteger),  # since the plan's start; NULL: not known
    Column("grown_bytes", BigInteger),  # against what was planned; NULL: not known
    Column("shrunk_bytes", BigInteger),
    Index("ix_progress_samples_plan", "plan_id", "sampled_at"),
)

PLAN_HURTS = Table(
    "plan_hurts",
    METADATA,
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), primary_key=True),
    Column("at", UtcDateTime, nullable=False),  # of the poll that has found them last
    Column("hurts", JSON, nullable=False),
)

COPY_GAINS = Table(
    "copy_gains",
    METADATA,
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), primary_key=True),
    Column("at", UtcDateTime, primary_key=True),
    # By topic: partition, broker, the broker that it is read from, bytes; of the last minute.
    Column("gains", JSON, nullable=False),
)

FLOW_SAMPLES = Table(
    "flow_samples",
    METADATA,
    Column("sample_id", Serial, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("busiest_bytes_per_s", Float, nullable=False),
    # By broker and direction; dropped when the governor looks back no further.
    Column("flows", JSON(none_as_null=True)),
    Column("silent", JSON(none_as_null=True)),
    Column("outside_isr", BigInteger),
    Column("messages_behind", BigInteger),
    Index("ix_flow_samples_plan", "plan_id", "at"),
)

RATE_CHANGES = Table(
    "rate_changes",
    METADATA,
    Column("change_id", Serial, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("at", UtcDateTime, nullable=False),
    Column("rate_bytes_per_s", BigInteger, nullable=False),  # nominal: what is set on brokers
    Column("target_bytes_per_s", BigInteger, nullable=False),  # what they are to deliver
    Column("limit_bytes_per_s", BigInteger, nullable=False),  # what was asked for
    Column("delivered_bytes_per_s", Float),
    Column("reason", String(20), nullable=False),
    Column("cause", Text, nullable=False),
    # Rates of brokers that have one of their own, a direction each; NULL: none has.
    Column("own", JSON(none_as_null=True)),
)

REPLICA_STATUSES = Table(
    "replica_statuses",
    METADATA,
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), primary_key=True),
    Column("topic", String(249), primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("broker", Integer, primary_key=True),
    Column("standing", String(20), nullable=False),
    Column("status_at", UtcDateTime, nullable=False),
    Column("last_in_isr_at", UtcDateTime),
    Column("messages_behind", BigInteger),
    Column("max_messages_behind", BigInteger),
    Column("bytes_behind", BigInteger),
    Column("size_bytes", BigInteger),
    Index("ix_replica_statuses_at", "plan_id", "status_at"),
)

EVENTS = Table(
    "events",
    METADATA,
    Column("event_id", Serial, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), index=True),
    Column("cluster_id", String(200)),
    Column("at", UtcDateTime, nullable=False),
    Column("actor", String(250), nullable=False),
    Column("kind", String(60), nullable=False),
    Column("detail", Text, nullable=False),
)

ALERTS = Table(
    "alerts",
    METADATA,
    Column("kind", String(40), primary_key=True),
    Column("subject", String(600), primary_key=True),  # the plan, cluster or run that it is about
    # What makes one at the same subject another one, such as the run's attempt.
    Column("occurrence", String(600), nullable=False),
    Column("plan_id", String(200), index=True),
    Column("cluster_id", String(200)),
    Column("first_raised_at", UtcDateTime, nullable=False),
    Column("last_raised_at", UtcDateTime, nullable=False),
    Column("closed_at", UtcDateTime),  # NULL: it lasts, as far as is known
    Column("claimed_until", UtcDateTime),  # until then one process sends it
    Column("sent_at", UtcDateTime),  # the last time to all channels
    Column("tried_at", UtcDateTime),  # the last time to any
    Column("times_sent", Integer, nullable=False),
    Column("failed_channels", JSON, nullable=False),  # channel: why it has not taken it
    Column("alert", JSON, nullable=False),  # as it was last to be sent
    Column("message_id", String(40)),  # of the last message; NULL: of an older Rehome
)

FINDINGS = Table(
    "findings",
    METADATA,
    Column("cluster_id", String(200), primary_key=True),
    Column("kind", String(40), primary_key=True),
    Column("subject", String(600), primary_key=True),  # what of the cluster it is about
    Column("first_seen_at", UtcDateTime, nullable=False),  # of the snapshots in a row
    Column("last_seen_at", UtcDateTime, nullable=False),
    Column("judged_at", UtcDateTime, nullable=False),  # when the last judged snapshot was taken
    Column("seen", Integer, nullable=False),  # so many snapshots in a row show it
    Column("clean", Integer, nullable=False),  # so many in a row do not
    Column("opened_at", UtcDateTime),  # NULL: it has not lasted long enough
    Column("closed_at", UtcDateTime),  # NULL: it is open, or never was
    Column("facts", JSON, nullable=False),
    Column("began", JSON(none_as_null=True)),  # times (ISO); NULL: not known to an older Rehome
)

WATCHED_CLUSTERS = Table(
    "watched_clusters",
    METADATA,
    Column("cluster_id", String(200), primary_key=True),
    Column("judged_at", UtcDateTime, nullable=False),  # when the last judged snapshot was taken
)

WATCH_STARTS = Table(
    "watch_starts",
    METADATA,
    Column("dag_id", String(250), primary_key=True),
    Column("run_id", String(250), primary_key=True),
    Column("cluster_id", String(200), nullable=False, index=True),
    Column("kind", String(40), nullable=False),  # of the finding that it is for
    Column("subject", String(600), nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("policy", String(20), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("deadline", UtcDateTime),  # of its approval; NULL: none is asked for
    Column("ended_at", UtcDateTime),  # NULL: it has not ended, or that is not known
    Column("failed", Boolean),
    Column("plan_id", String(200)),  # that the run has made; NULL: it has made none, or not yet
)

BROKER_RACKS = Table(
    "broker_racks",
    METADATA,
    Column("cluster_id", String(200), primary_key=True),
    Column("broker", Integer, primary_key=True, autoincrement=False),
    Column("rack", Text, nullable=False),  # when it was last alive; empty: it has none
)

RUN_CAUSES = Table(
    "run_causes",
    METADATA,
    Column("dag_id", String(250), primary_key=True),
    Column("run_id", String(250), primary_key=True),
    Column("task_id", String(250), primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("cleared", Integer, nullable=False),  # how often the run had been
    Column("kind", String(40), nullable=False),
    Column("text", Text, nullable=False),
    Column("state_left", Text, nullable=False),
    Column("remedy", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("over_at", UtcDateTime),  # the task has succeeded since; NULL: it has not
    Column("plan_id", String(200)),  # that the run is about; NULL: none
    Column("connection", String(250)),
    Index("ix_run_causes_plan", "plan_id", "at"),
    Index("ix_run_causes_at", "at"),
)
