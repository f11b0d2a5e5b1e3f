"""A plan that was rejected is known by a code, and not by the sentence of its cause."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_REJECTED = "rejected"  # how causes have said so until now


def upgrade() -> None:
    """Add the column; older plans said it in words. One that had started was not rejected."""
    op.add_column("plans", sa.Column("end_reason", sa.String(20)))
    plans = sa.table("plans", *map(sa.column, ("end_reason", "cause", "state", "started_at")))
    rejected = (plans.c.cause == _REJECTED, plans.c.state == "cancelled")
    op.execute(
        plans.update().where(*rejected, plans.c.started_at.is_(None)).values(end_reason="rejected")
    )


def downgrade() -> None:
    """Drop it; the words are still there."""
    op.drop_column("plans", "end_reason")
