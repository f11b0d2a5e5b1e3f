"""Plans that are old go with all their rows; what still matters stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.domain.configs import ConfigResource
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.throttle.keys import LEADER_RATE
from rehome.ledger.base.models import METADATA, PLANS
from rehome.ledger.base.records import ThrottleEntry, ThrottleState
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.ledger.stores.removal.old_rows import AGES, KEPT
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan

YEAR = timedelta(days=365)
ENTRY = ThrottleEntry("p1", "c1", ConfigResource.broker(1), LEADER_RATE, ("5",), None, "")


def recorded(ledger: Ledger, plan_id: str, cluster_id: str = "c1") -> Plan:
    plan = make_plan(plan_id, cluster_id=cluster_id)
    ledger.create_plan(plan, {}, f"file:///plans/{plan_id}", "run-1", "ann", "k", "dag")
    return plan


def started(ledger: Ledger, plan_id: str, cluster_id: str = "c1") -> Plan:
    plan = recorded(ledger, plan_id, cluster_id)
    ledger.approve(plan_id, plan.plan_hash, "ann")
    ledger.acquire_lease(cluster_id, "dag/run-1", 60)
    ledger.claim(plan_id)
    return plan


def ended(ledger: Ledger, plan_id: str) -> None:
    for move in started(ledger, plan_id).moves:
        ledger.settle(plan_id, move.partition, MoveState.DONE)
    ledger.transition(plan_id, PlanState.DONE, "all ended")


def ended_under_a_throttle(ledger: Ledger) -> None:
    ended(ledger, "p1")
    ledger.journal_throttles([ENTRY])


def newer(ledger: Ledger, clock: SetClock) -> None:
    """A plan of the same cluster that is not old."""
    clock.pass_s(YEAR.total_seconds())
    recorded(ledger, "new")


def old(ledger: Ledger, clock: SetClock) -> list[str]:
    return [plan.plan_id for plan in ledger.old_plans(clock() - YEAR / 2, 10)]


def test_a_plan_that_ended_long_ago_goes_with_every_row_about_it(
    ledger: Ledger, clock: SetClock
) -> None:
    ended(ledger, "p1")
    cause = Cause(CauseKind.GATE, "It is refused.", "", "", clock(), "plan")
    ledger.record_cause(EndedRun("dag", "run-1", cause, "p1"))
    ledger.journal_throttles([ENTRY])
    ledger.mark_throttles([replace(ENTRY, state=ThrottleState.CLEARED)])
    newer(ledger, clock)
    assert old(ledger, clock) == ["p1"]
    assert ledger.forget_plan("p1", clock() - YEAR / 2)
    with ledger.reading() as connection:
        left = {
            table.name
            for table in METADATA.sorted_tables
            if "plan_id" in table.c
            and connection.execute(select(table).where(table.c.plan_id == "p1")).first()
        }
        plans = set(connection.scalars(select(PLANS.c.plan_id)))
    assert left == {"audit", "events"}
    assert plans == {"new"}
    assert not ledger.forget_plan("p1", clock()), "it is gone"


def test_a_plan_that_was_never_begun_goes_too(ledger: Ledger, clock: SetClock) -> None:
    recorded(ledger, "p1")
    newer(ledger, clock)
    assert old(ledger, clock) == ["p1"]


@pytest.mark.parametrize(
    "stays",
    [
        lambda ledger: started(ledger, "p1"),
        lambda ledger: (recorded(ledger, "p1"), ledger.hand_over("p1", "ann")),
        ended_under_a_throttle,
        lambda ledger: recorded(ledger, "p1", "another"),
    ],
    ids=["it is active", "it waits for a window", "its throttle may be set", "no newer plan"],
)
def test_what_still_matters_stays(
    ledger: Ledger, clock: SetClock, stays: Callable[[Ledger], object]
) -> None:
    stays(ledger)
    newer(ledger, clock)
    assert old(ledger, clock) == []
    assert not ledger.forget_plan("p1", clock() - YEAR / 2)
    assert ledger.plan("p1").plan_id == "p1"


def test_an_old_plan_that_was_approved_of_late_stays(ledger: Ledger, clock: SetClock) -> None:
    plan = recorded(ledger, "p1")
    newer(ledger, clock)
    ledger.approve("p1", plan.plan_hash, "ann")
    assert old(ledger, clock) == []


def test_what_is_not_old_stays(ledger: Ledger, clock: SetClock) -> None:
    ended(ledger, "p1")
    clock.pass_s(60)
    recorded(ledger, "p2")
    assert old(ledger, clock) == []


def test_old_rows_about_no_plan_go_and_those_of_plans_stay(ledger: Ledger, clock: SetClock) -> None:
    recorded(ledger, "p1")
    cause = Cause(CauseKind.GATE, "It is refused.", "", "", clock(), "plan")
    ledger.record_cause(EndedRun("dag", "run-1", cause, "p1"))
    ledger.record_cause(EndedRun("dag", "run-2", cause))
    closed = Alert(AlertKind.FOREIGN_LEFTOVERS, "c1", "", cluster_id="c1").to_raise(60)
    lasts = Alert(AlertKind.FOREIGN_LEFTOVERS, "c2", "", cluster_id="c2").to_raise(60)
    ledger.raise_alerts([closed, lasts])
    ledger.raise_alerts([], [closed.key])
    clock.pass_s(YEAR.total_seconds())
    assert ledger.forget_rows(clock() - YEAR / 2) == {"alerts": 1, "run_causes": 1}
    assert ledger.cause_of("dag", "run-1") == cause
    assert ledger.cause_of("dag", "run-2") is None
    assert [each.subject for each in ledger.open_alerts(AlertKind.FOREIGN_LEFTOVERS)] == ["c2"]


def test_every_table_with_a_plans_id_or_an_age_is_accounted_for() -> None:
    """A new table is one that goes with its plans, has an age, or is kept: by a decision."""
    of_plans = {table for table in METADATA.sorted_tables if "plan_id" in table.c}
    known = {
        *("audit_exports", "bindings", "broker_racks", "connections", "identity", "leases"),
        *("seen_reassignments", "watched_clusters"),
    }
    others = {table.name for table in METADATA.sorted_tables if table not in of_plans | set(AGES)}
    assert others == known, "of clusters and connections: a row each, which does not grow"
    assert of_plans > KEPT
