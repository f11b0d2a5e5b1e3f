"""The ledger says where moves lead: cancelling and cleaning up do not need the plan's files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_COLUMNS = (
    sa.Column("replicas_current", sa.JSON(none_as_null=True)),
    sa.Column("replicas_target", sa.JSON(none_as_null=True)),
    sa.Column("log_dirs_current", sa.JSON(none_as_null=True)),
    sa.Column("log_dirs_target", sa.JSON(none_as_null=True)),
    sa.Column("size_bytes", sa.BigInteger),
    sa.Column("reason", sa.String(20)),
    sa.Column("topic_id", sa.String(40)),
)
# Of what an older version has started, the reassignments tell it, less the log dirs.
_STARTED = """
UPDATE moves SET
  replicas_current = ({of} r.replicas_before {started}),
  replicas_target = ({of} r.replicas_target {started}),
  topic_id = coalesce(({of} r.topic_id {started}), ''),
  log_dirs_current = '[]', log_dirs_target = '[]', size_bytes = bytes_to_move, reason = 'requested'
WHERE EXISTS ({of} 1 {started})
"""


def upgrade() -> None:
    """Add the columns; they are not known for moves that were never started."""
    for column in _COLUMNS:
        op.add_column("moves", column.copy())
    started = (
        "FROM reassignments r WHERE r.plan_id = moves.plan_id AND r.topic = moves.topic "
        "AND r.partition = moves.partition ORDER BY r.started_at DESC LIMIT 1"
    )
    op.execute(_STARTED.format(of="SELECT", started=started))


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("moves") as moves:
        for column in reversed(_COLUMNS):
            moves.drop_column(column.name)
