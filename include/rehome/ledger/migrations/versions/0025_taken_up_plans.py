"""Which plan a run took up last is a row of its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, from the events: their detail was ``DAG/run``, and no DAG's id has a slash."""
    op.create_table(
        "taken_up_plans",
        sa.Column("dag_id", sa.String(250), primary_key=True),
        sa.Column("run_id", sa.String(250), primary_key=True),
        sa.Column("plan_id", sa.String(200), nullable=False),
    )
    table = sa.table("taken_up_plans", *map(sa.column, ("dag_id", "run_id", "plan_id")))
    events = sa.table("events", *map(sa.column, ("event_id", "plan_id", "kind", "detail")))
    connection = op.get_bind()
    written = sa.select(events.c.detail, events.c.plan_id).where(
        events.c.kind == "continued", events.c.plan_id.is_not(None)
    )
    found: dict[tuple[str, str], str] = {}
    for detail, plan_id in connection.execute(written.order_by(events.c.event_id)).all():
        dag_id, slash, run_id = detail.partition("/")
        if slash:
            found[dag_id, run_id] = plan_id
    if found:
        rows = [
            {"dag_id": dag_id, "run_id": run_id, "plan_id": plan_id}
            for (dag_id, run_id), plan_id in found.items()
        ]
        connection.execute(table.insert(), rows)


def downgrade() -> None:
    """Drop it: the events say so, too."""
    op.drop_table("taken_up_plans")
