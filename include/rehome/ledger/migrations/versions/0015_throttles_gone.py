"""The throttle journal counts how often an entry was gone while moves in flight relied on it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_COUNTS = ("times_gone", "times_alerted")


def upgrade() -> None:
    """Add both counts; nothing was counted until now."""
    with op.batch_alter_table("throttle_entries") as table:
        for name in _COUNTS:
            table.add_column(sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    with op.batch_alter_table("throttle_entries") as table:
        for name in _COUNTS:
            table.alter_column(name, server_default=None)


def downgrade() -> None:
    """Drop both."""
    for name in _COUNTS:
        op.drop_column("throttle_entries", name)
