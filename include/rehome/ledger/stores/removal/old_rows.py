"""What is old, and is removed: plans with all that is about them, and rows that no plan needs.

The audit, events and questions stay: the database itself keeps them (``migrations/append_only.py``
and ``written_once.py``); ``rehome audit export`` removes what it has exported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, delete, func, or_, select

from rehome.domain.run.states import PlanState
from rehome.ledger.base.approval_tables import DRY_RUNS, QUESTIONS
from rehome.ledger.base.audit_tables import AUDIT
from rehome.ledger.base.authority_models import (
    CARRIED_OUT,
    NOT_WATCHED,
    REQUESTED_RUNS,
    TAKEN_SNAPSHOTS,
)
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import (
    ALERTS,
    EVENTS,
    FINDINGS,
    METADATA,
    PLANS,
    RUN_CAUSES,
    THROTTLE_ENTRIES,
    WATCH_STARTS,
)
from rehome.ledger.base.records import ThrottleState

KEPT = frozenset({AUDIT, EVENTS, QUESTIONS})
"""Tables with a plan's id that are not removed with it."""
AGES: Mapping[Table, ColumnElement[Any]] = {
    ALERTS: ALERTS.c.closed_at,
    FINDINGS: FINDINGS.c.closed_at,
    RUN_CAUSES: RUN_CAUSES.c.at,
    WATCH_STARTS: WATCH_STARTS.c.ended_at,
    DRY_RUNS: DRY_RUNS.c.tried_at,
    REQUESTED_RUNS: REQUESTED_RUNS.c.at,
    CARRIED_OUT: CARRIED_OUT.c.at,
    NOT_WATCHED: NOT_WATCHED.c.at,
    TAKEN_SNAPSHOTS: TAKEN_SNAPSHOTS.c.taken_at,
}
"""Tables whose rows are removed by their age, and the column that tells it: NULL is never old.
Rows about a plan that is still there stay with it.
"""
_ENDED = [state for state in PlanState if state.ended]
_WAITS = [PlanState.PLANNED, PlanState.APPROVED]


@dataclass(frozen=True, slots=True)
class OldPlan:
    """A plan that is to go: its id, and where its files are."""

    plan_id: str
    plan_dir: str


class OldRowStore(Database):
    """Removes what nobody needs any more."""

    def old_plans(self, before: datetime, most: int) -> list[OldPlan]:
        """Plans that ended before a time, or were made, and approved if they were, before it and
        never begun: the oldest first.

        Not among them: a plan that is active or handed over to a window; one whose throttles or
        cordon are not all taken back; the newest plan of each cluster.

        :param most: how many at most.
        """
        query = _old(before).order_by(PLANS.c.created_at).limit(most)
        with self.reading() as connection:
            return [OldPlan(row.plan_id, row.plan_dir) for row in connection.execute(query)]

    def forget_plan(self, plan_id: str, before: datetime) -> bool:
        """Remove a plan with all its rows in one transaction.

        :returns: False: it is not old any more, for it was taken up or handed over meanwhile.
        """
        with self.writing() as connection:
            if connection.execute(_old(before).where(PLANS.c.plan_id == plan_id)).first() is None:
                return False
            for table in _of_plans():
                connection.execute(delete(table).where(table.c.plan_id == plan_id))
            return True

    def forget_rows(self, before: datetime) -> dict[str, int]:
        """Remove rows that are older than a time and about no plan that is there.

        :returns: table → how many were removed, where any were.
        """
        removed = {}
        for table, age in AGES.items():
            old = age < before
            if "plan_id" in table.c:
                of_none = table.c.plan_id.not_in(select(PLANS.c.plan_id))
                old = and_(old, or_(table.c.plan_id.is_(None), of_none))
            with self.writing() as connection:
                count = connection.execute(delete(table).where(old)).rowcount
            if count:
                removed[table.name] = count
        return removed


def _of_plans() -> Iterator[Table]:
    """Tables with a plan's id: those that refer to others first, plans last."""
    for table in reversed(METADATA.sorted_tables):
        if "plan_id" in table.c and table not in KEPT and table is not PLANS:
            yield table
    yield PLANS


def _old(before: datetime) -> Select[Any]:
    plans, entries = PLANS.c, THROTTLE_ENTRIES.c
    others = PLANS.alias()
    newer = select(others.c.plan_id).where(
        others.c.cluster_id == plans.cluster_id, others.c.created_at > plans.created_at
    )
    left = select(entries.entry_id).where(
        entries.plan_id == plans.plan_id, entries.state != ThrottleState.CLEARED
    )
    never_begun = and_(
        plans.state.in_(_WAITS),
        plans.for_window_at.is_(None),
        func.coalesce(plans.approved_at, plans.created_at) < before,
    )
    return select(plans.plan_id, plans.plan_dir).where(
        or_(and_(plans.state.in_(_ENDED), plans.ended_at < before), never_begun),
        plans.active_cluster_id.is_(None),
        newer.exists(),
        ~left.exists(),
    )
