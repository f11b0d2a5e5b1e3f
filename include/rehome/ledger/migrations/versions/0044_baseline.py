"""The baseline: a new ledger in one step. Migrations up to 0044, which led here, are gone."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

from rehome.ledger.migrations import append_only, written_once
from rehome.ledger.migrations.baseline.of_clusters import create_tables_of_clusters
from rehome.ledger.migrations.baseline.of_plans import create_tables_of_plans

revision = "0044"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table and trigger, and give the ledger its id."""
    create_tables_of_plans()
    create_tables_of_clusters()
    identity = sa.table("identity", sa.column("ledger_id"))
    op.bulk_insert(identity, [{"ledger_id": uuid.uuid4().hex}])
    connection = op.get_bind()
    for table in append_only.NUMBERS:
        append_only.create(connection, table)
    written_once.create(connection)


def downgrade() -> None:
    """There is nothing before it.

    :raises NotImplementedError: always.
    """
    raise NotImplementedError("0044 is the oldest schema of a ledger: it cannot be downgraded.")
