"""How soon Airflow acted in the runs that are over, as far as the ledger shows."""

from __future__ import annotations

from sqlalchemy import Connection, RowMapping, func, select

from rehome.domain.run.states import PlanState
from rehome.domain.run.timing import RunTiming, timing_of
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import PLANS, REASSIGNMENTS
from rehome.ledger.stores.samples import newest_samples

RUNS, POLLS = 10, 200
"""So many of the newest runs are read, and of each so many of its newest polls."""


class TimingStore(Database):
    """Timings of plans that are done, of all clusters that share the ledger."""

    def run_timings(self) -> list[RunTiming]:
        """Of the newest plans that were carried out to their end, newest first."""
        done = (
            select(PLANS.c.plan_id, PLANS.c.started_at, PLANS.c.ended_at)
            .where(PLANS.c.state == PlanState.DONE)
            .order_by(PLANS.c.ended_at.desc(), PLANS.c.plan_id)
            .limit(RUNS)
        )
        with self.reading() as connection:
            plans = connection.execute(done).mappings().all()
            found = [_timing(connection, plan) for plan in plans]
        return [timing for timing in found if timing is not None]


def _timing(connection: Connection, plan: RowMapping) -> RunTiming | None:
    """None of a plan that had nothing to move."""
    first = select(func.min(REASSIGNMENTS.c.started_at)).where(
        REASSIGNMENTS.c.plan_id == plan["plan_id"]
    )
    first_move_at = connection.execute(first).scalar_one()
    if first_move_at is None:
        return None
    samples = newest_samples(connection, plan["plan_id"], POLLS)
    return timing_of(plan["started_at"], first_move_at, plan["ended_at"], samples)
