"""Tables of the ledger by which tasks check what they are handed: runs, snapshots, connections."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Index, Integer, String, Table, Text

from rehome.ledger.base.models import METADATA, UtcDateTime

REQUESTED_RUNS = Table(
    "requested_runs",
    METADATA,
    Column("dag_id", String(250), primary_key=True),
    Column("run_id", String(250), primary_key=True),
    Column("conf", JSON, nullable=False),  # that the run is to have
    Column("door", String(20), nullable=False),
    Column("asked_by", String(250)),  # a person; NULL: none
    Column("by_dag_id", String(250), nullable=False),  # the run that had it started
    Column("by_run_id", String(250), nullable=False),
    Column("by_task_id", String(250), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("begun_by", UtcDateTime),  # run_after of the run that began; NULL: none has
)

CARRIED_OUT = Table(
    "carried_out_requests",
    METADATA,
    Column("dag_id", String(250), primary_key=True),
    Column("run_id", String(250), primary_key=True),
    Column("clear_number", Integer, nullable=False),  # how often the run had been cleared
    Column("at", UtcDateTime, nullable=False),
)

NOT_WATCHED = Table(
    "not_watched",
    METADATA,
    Column("dag_id", String(250), primary_key=True),
    Column("run_id", String(250), primary_key=True),
    Column("cluster_id", String(200), primary_key=True),
    Column("at", UtcDateTime, nullable=False),
)

TAKEN_SNAPSHOTS = Table(
    "taken_snapshots",
    METADATA,
    Column("name", String(500), primary_key=True),  # its place below snapshots/ in the warehouse
    Column("cluster_id", String(200), nullable=False),
    Column("connection", String(250), nullable=False),
    Column("taken_at", UtcDateTime, nullable=False),
    Column("digest", String(64), nullable=False),  # SHA-256 of its snapshot.json
    Column("dag_id", String(250), nullable=False),
    Column("run_id", String(250), nullable=False),
    Column("task_id", String(250), nullable=False),
    Index("ix_taken_snapshots_run", "dag_id", "run_id", "task_id"),
    Index("ix_taken_snapshots_cluster", "cluster_id", "taken_at"),
)

CONNECTIONS = Table(
    "connections",
    METADATA,
    Column("connection", String(250), primary_key=True),
    Column("cluster_id", String(200), nullable=False),  # that it was last seen to lead to
    Column("seen_at", UtcDateTime, nullable=False),
    # What its policy said of pace and approval, when it was last read; NULL: it never was.
    Column("policy", JSON(none_as_null=True)),
    Column("windowless_at", UtcDateTime),  # first seen to lead to a cluster without windows
)

BINDINGS = Table(
    "bindings",
    METADATA,
    Column("kind", String(20), primary_key=True),  # a connection, or an entry of the clusters file
    Column("name", String(250), primary_key=True),
    Column("cluster_id", String(200), nullable=False),  # what acts by it acts on no other cluster
    Column("bound_at", UtcDateTime, nullable=False),
    Column("bound_by", String(250), nullable=False),  # a person, or Rehome at the first use
    Column("read_by", Text, nullable=False),  # what has seen the connection lead there
)
