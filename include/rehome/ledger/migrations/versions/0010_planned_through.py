"""Plans know the connection that they were made through: it is named where another one is used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is not known for older plans."""
    op.add_column("plans", sa.Column("planned_through", sa.String(250)))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("plans", "planned_through")
