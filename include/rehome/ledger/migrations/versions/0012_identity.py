"""A ledger has an id of its own, which the files of its plans name."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give the ledger its id."""
    identity = op.create_table("identity", sa.Column("ledger_id", sa.String(32), primary_key=True))
    op.bulk_insert(identity, [{"ledger_id": uuid.uuid4().hex}])


def downgrade() -> None:
    """Take it away; an upgrade gives another one."""
    op.drop_table("identity")
