"""The id of each alert's message: receivers drop what comes twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; NULL: what was sent before had another id at each attempt."""
    op.add_column("alerts", sa.Column("message_id", sa.String(40)))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("alerts") as table:
        table.drop_column("message_id")
