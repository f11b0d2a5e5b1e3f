"""A poll reads what is in flight and what is new, not the whole plan: versions and indexes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_moves_state": ("moves", ["plan_id", "state", "bytes_to_move"]),
    "ix_moves_version": ("moves", ["plan_id", "version"]),
    "ix_replica_statuses_at": ("replica_statuses", ["plan_id", "status_at"]),
}


def upgrade() -> None:
    """All that is recorded so far has version 0: the first poll reads it anyway."""
    for table, column in (("plans", "moves_version"), ("moves", "version")):
        number = sa.Column(column, sa.BigInteger, nullable=False, server_default="0")
        op.add_column(table, number)
    for name, (table, columns) in INDEXES.items():
        op.create_index(name, table, columns)


def downgrade() -> None:
    """The other way round."""
    for name, (table, _) in INDEXES.items():
        op.drop_index(name, table)
    for table, column in (("moves", "version"), ("plans", "moves_version")):
        op.drop_column(table, column)
