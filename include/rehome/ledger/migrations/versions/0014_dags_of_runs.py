"""Plans know the DAG of the run that drives them: ids of runs are unique within a DAG only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is not known for older plans, which have the run's id only."""
    op.add_column("plans", sa.Column("dag_id", sa.String(250)))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("plans", "dag_id")
