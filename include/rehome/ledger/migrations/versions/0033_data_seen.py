"""What polls see of the messages of each move: high watermark, leader epoch, and what is lost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("high_watermark", sa.BigInteger),
    ("leader_epoch", sa.Integer),
    ("lost_from", sa.BigInteger),
    ("lost_until", sa.BigInteger),
)


def upgrade() -> None:
    """Add the columns; NULL: of what moved before it is not known."""
    with op.batch_alter_table("reassignments") as table:
        for name, kind in _COLUMNS:
            table.add_column(sa.Column(name, kind))
    op.create_index("ix_reassignments_lost", "reassignments", ["plan_id", "lost_from"])


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_reassignments_lost", "reassignments")
    with op.batch_alter_table("reassignments") as table:
        for name, _ in reversed(_COLUMNS):
            table.drop_column(name)
