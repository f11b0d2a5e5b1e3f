"""What the newest poll of a plan has found that keeps it from going on as it should."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from rehome.domain.run.causes.hurts import Hurt, lasting
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import PLAN_HURTS
from rehome.ledger.base.plan_rows import select_plan, unknown_plan

_OF_PLAN = select(PLAN_HURTS.c.hurts, PLAN_HURTS.c.at).where(
    PLAN_HURTS.c.plan_id == bindparam("of")
)

_NEW = insert(PLAN_HURTS)
_CHANGE = update(PLAN_HURTS).where(PLAN_HURTS.c.plan_id == bindparam("of"))
_FORGET = delete(PLAN_HURTS).where(PLAN_HURTS.c.plan_id == bindparam("of"))


class HurtStore(Database):
    """One row for each plan, written anew when a poll has found something else."""

    def record_hurts(self, plan_id: str, at: datetime, hurts: Collection[Hurt]) -> tuple[Hurt, ...]:
        """Record what a poll has found; of two polls, the later one stays. Nothing is written where
        nothing is found, as before.

        :returns: the same, each since when it was first found.
        :raises PlanConflictError: the ledger knows no such plan: it is another one by now.
        """
        with self.reading() as connection:
            row = _row(connection, plan_id)
        if not hurts and (row is None or not row[0]):
            return ()
        with self.writing() as connection:
            if select_plan(connection, plan_id) is None:
                raise unknown_plan(plan_id)
            before, last = _row(connection, plan_id) or ((), None)
            dated = lasting(hurts, before, at)
            values = {"at": at, "hurts": [each.to_json() for each in dated]}
            if last is None:
                connection.execute(_NEW, {"plan_id": plan_id, **values})
            elif at > last or last > self._clock():  # the clock has been put back since
                connection.execute(_CHANGE, {"of": plan_id, **values})
        return dated

    def hurts(self, plan_id: str) -> tuple[Hurt, ...]:
        """What the newest poll has found since the plan last went on, by what to do about it."""
        with self.reading() as connection:
            row = _row(connection, plan_id)
        return () if row is None else row[0]


def forget_hurts(connection: Connection, plan_id: str) -> None:
    """A plan goes on: what polls have found before is over, whatever the clock says."""
    connection.execute(_FORGET, {"of": plan_id})


def _row(connection: Connection, plan_id: str) -> tuple[tuple[Hurt, ...], datetime] | None:
    row = connection.execute(_OF_PLAN, {"of": plan_id}).first()
    return None if row is None else (tuple(Hurt.from_json(each) for each in row.hurts), row.at)
