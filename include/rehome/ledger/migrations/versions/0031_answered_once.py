"""Triggers keep what was asked and answered; whom the run is of, beside the plan, has a name."""

from __future__ import annotations

from alembic import op

from rehome.ledger.migrations import written_once

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Name the run's asker beside the plan's, and let no answer change."""
    op.execute("ALTER TABLE questions RENAME COLUMN asked_by TO run_asked_by")
    written_once.create(op.get_bind())


def downgrade() -> None:
    """Undo both."""
    written_once.drop(op.get_bind())
    op.execute("ALTER TABLE questions RENAME COLUMN run_asked_by TO asked_by")
