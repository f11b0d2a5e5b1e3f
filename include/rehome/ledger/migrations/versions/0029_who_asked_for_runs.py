"""Who has asked for the runs that tasks start, and which snapshot a run has taken, are rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_RUN = (
    ("dag_id", sa.String(250)),
    ("run_id", sa.String(250)),
)


def upgrade() -> None:
    """Add the tables, empty: what was started before has no row, and starts nothing any more."""
    op.create_table(
        "requested_runs",
        *(sa.Column(name, kind, primary_key=True) for name, kind in _RUN),
        sa.Column("conf", sa.JSON, nullable=False),
        sa.Column("door", sa.String(20), nullable=False),
        sa.Column("asked_by", sa.String(250)),
        sa.Column("by_dag_id", sa.String(250), nullable=False),
        sa.Column("by_run_id", sa.String(250), nullable=False),
        sa.Column("by_task_id", sa.String(250), nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("begun_by", sa.DateTime),
    )
    op.create_table(
        "carried_out_requests",
        *(sa.Column(name, kind, primary_key=True) for name, kind in _RUN),
        sa.Column("clear_number", sa.Integer, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "not_watched",
        *(sa.Column(name, kind, primary_key=True) for name, kind in _RUN),
        sa.Column("cluster_id", sa.String(200), primary_key=True),
        sa.Column("at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "taken_snapshots",
        sa.Column("name", sa.String(500), primary_key=True),
        sa.Column("cluster_id", sa.String(200), nullable=False),
        sa.Column("connection", sa.String(250), nullable=False),
        sa.Column("taken_at", sa.DateTime, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        *(sa.Column(name, kind, nullable=False) for name, kind in _RUN),
        sa.Column("task_id", sa.String(250), nullable=False),
    )
    op.create_index("ix_taken_snapshots_run", "taken_snapshots", ["dag_id", "run_id", "task_id"])
    op.create_index("ix_taken_snapshots_cluster", "taken_snapshots", ["cluster_id", "taken_at"])


def downgrade() -> None:
    """Drop them."""
    for index in ("ix_taken_snapshots_cluster", "ix_taken_snapshots_run"):
        op.drop_index(index, "taken_snapshots")
    for table in ("taken_snapshots", "not_watched", "carried_out_requests", "requested_runs"):
        op.drop_table(table)
