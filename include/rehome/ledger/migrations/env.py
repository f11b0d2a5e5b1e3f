"""Run by Alembic inside the transaction that rehome.ledger.base.database opens."""

from __future__ import annotations

from alembic import context

from rehome.ledger.base.models import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
