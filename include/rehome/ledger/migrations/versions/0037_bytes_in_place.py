"""Bytes that moves have brought: in place, received, grown and taken back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("moves", ("bytes_in_place",)),
    ("plans", ("bytes_taken_back",)),
    ("progress_samples", ("received_bytes", "grown_bytes", "shrunk_bytes")),
)
_INDEX, _SUMMED = "ix_moves_state", ["plan_id", "state", "bytes_to_move"]


def upgrade() -> None:
    """Add the columns; NULL: an earlier Rehome did not record it. Sums are read from the index."""
    for name, columns in _COLUMNS:
        with op.batch_alter_table(name) as table:
            for column in columns:
                table.add_column(sa.Column(column, sa.BigInteger))
    op.drop_index(_INDEX, "moves")
    op.create_index(_INDEX, "moves", [*_SUMMED, "bytes_in_place"])


def downgrade() -> None:
    """Drop them."""
    op.drop_index(_INDEX, "moves")
    op.create_index(_INDEX, "moves", _SUMMED)
    for name, columns in _COLUMNS:
        with op.batch_alter_table(name) as table:
            for column in columns:
                table.drop_column(column)
