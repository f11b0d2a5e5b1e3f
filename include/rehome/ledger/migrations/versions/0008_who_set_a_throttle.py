"""An entry of the throttle journal knows by a code whether another client has changed its key."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_CHANGED_SINCE = "somebody has changed it since%"  # how entries have said so until now


def upgrade() -> None:
    """Add the column; older entries said it in words."""
    with op.batch_alter_table("throttle_entries") as table:
        table.add_column(
            sa.Column("set_by", sa.String(20), nullable=False, server_default="rehome")
        )
    entries = sa.table("throttle_entries", sa.column("set_by"), sa.column("detail"))
    op.execute(
        entries.update().where(entries.c.detail.like(_CHANGED_SINCE)).values(set_by="others")
    )
    with op.batch_alter_table("throttle_entries") as table:
        table.alter_column("set_by", server_default=None)


def downgrade() -> None:
    """Drop it; the words are still there."""
    op.drop_column("throttle_entries", "set_by")
