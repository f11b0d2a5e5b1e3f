"""Plans know who has asked for a throttle, a window or other terms that are not their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_ENDED = ("done", "cancelled", "failed", "rolled_back")


def upgrade() -> None:
    """Add the column. Of a plan that has not ended, the events say who has asked for its throttle:
    with a request, or with the run that has taken it up.
    """
    op.add_column("plans", sa.Column("terms_asked_by", sa.JSON(none_as_null=True)))
    plans = sa.table(
        "plans",
        *map(sa.column, ("plan_id", "state", "requested_rate_bytes_per_s")),
        sa.column("terms_asked_by", sa.JSON),
    )
    events = sa.table("events", *map(sa.column, ("event_id", "plan_id", "kind", "detail", "actor")))
    rate, connection = plans.c.requested_rate_bytes_per_s, op.get_bind()
    open_plans = sa.select(plans.c.plan_id, rate).where(
        rate.is_not(None), plans.c.state.not_in(_ENDED)
    )
    for plan_id, rate_bytes_per_s in connection.execute(open_plans).all():
        words = f"throttle of {rate_bytes_per_s} B/s requested"  # how events have said so
        of_plan = sa.select(events.c.actor).where(events.c.plan_id == plan_id)
        newest = of_plan.order_by(events.c.event_id.desc()).limit(1)
        actor = connection.scalar(newest.where(events.c.detail == words))
        actor = actor or connection.scalar(newest.where(events.c.kind == "continued"))
        if actor is not None:
            found = plans.update().where(plans.c.plan_id == plan_id)
            connection.execute(found.values(terms_asked_by={"rate": actor}))


def downgrade() -> None:
    """Drop it: who raises a throttle may approve it again."""
    op.drop_column("plans", "terms_asked_by")
