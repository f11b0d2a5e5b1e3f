"""Which version of Rehome has made a plan."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Plans that are there have none: their version was not kept."""
    op.add_column("plans", sa.Column("rehome_version", sa.String(40)))


def downgrade() -> None:
    """An older Rehome refuses a ledger that a newer one wrote.

    :raises NotImplementedError: always.
    """
    raise NotImplementedError("A ledger is not downgraded: restore its backup.")
