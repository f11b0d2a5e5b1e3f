"""When a finding began, each time within a day: brokers that flap are found by it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; NULL: what began before it is not known."""
    op.add_column("findings", sa.Column("began", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("findings") as table:
        table.drop_column("began")
