"""The id of the topic that a reassignment was of: names come back, ids do not."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of what is recorded already the id is not known."""
    op.add_column("reassignments", sa.Column("topic_id", sa.String(40)))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("reassignments", "topic_id")
