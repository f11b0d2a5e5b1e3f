"""What each copy has received at the newest polls, and which broker it is read from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; NULL: no poll of this version has seen the copy."""
    with op.batch_alter_table("replica_statuses") as table:
        table.add_column(sa.Column("gains", sa.JSON))
        table.add_column(sa.Column("read_from", sa.Integer))


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("replica_statuses") as table:
        table.drop_column("read_from")
        table.drop_column("gains")
