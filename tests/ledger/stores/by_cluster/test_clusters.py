"""What was Rehome's own on a cluster at a time, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from rehome.domain.configs import ConfigResource
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.throttle.keys import LEADER_RATE
from rehome.ledger.base.records import ThrottleEntry, ThrottleState
from rehome.ledger.store import Ledger
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan

BROKER = ConfigResource.broker(1)


def later(clock: SetClock) -> datetime:
    """A moment after all that was, and before all that will be."""
    clock.pass_s(10)
    at = clock()
    clock.pass_s(10)
    return at


def test_what_was_rehomes_own_at_a_time_is_known_afterwards(
    ledger: Ledger, clock: SetClock
) -> None:
    before = later(clock)
    plan = make_plan("p1")
    first = plan.moves[0]
    ledger.create_plan(plan, {}, "file:///p1", "run-1", "ann")
    ledger.approve("p1", plan.plan_hash, "ann")
    ledger.claim("p1")
    entry = ThrottleEntry("p1", "c1", BROKER, LEADER_RATE, ("5",), None, "")
    ledger.journal_throttles([entry])
    throttled = later(clock)
    ledger.admit("p1", [first], Observation(clock(), {}, {}, frozenset()), None)
    flying = later(clock)
    ledger.settle("p1", first.partition, MoveState.DONE)
    ledger.mark_throttles([replace(entry, state=ThrottleState.CLEARED)])
    ledger.transition("p1", PlanState.FAILED, "nothing moved")
    over = later(clock)

    ours = {(BROKER, LEADER_RATE): frozenset({"5"})}
    for at, of_throttle, moving in (
        (before, {}, frozenset()),
        (throttled, ours, frozenset()),
        (flying, ours, {first.partition}),
        (over, {}, frozenset()),
    ):
        assert ledger.throttled_here_at("c1", at) == of_throttle
        assert ledger.moving_here_at("c1", at) == moving
        assert ledger.throttled_here_at("c2", at) == {}
        assert ledger.moving_here_at("c2", at) == frozenset()


def test_the_newest_plans_of_a_cluster_come_first(ledger: Ledger, clock: SetClock) -> None:
    for name, cluster in (("p1", "c1"), ("p2", "c2"), ("p3", "c1"), ("p4", "c1")):
        plan = make_plan(name, cluster_id=cluster)
        ledger.create_plan(plan, {}, "file:///p", name, "ann")
        ledger.transition(name, PlanState.CANCELLED, "not wanted")
        clock.pass_s(1)
    assert [record.plan_id for record in ledger.plans_on("c1", 2)] == ["p4", "p3"]
    assert [record.plan_id for record in ledger.plans_on("c2", 2)] == ["p2"]


def test_a_connection_is_known_to_lead_where_it_was_last_seen_to_lead(ledger: Ledger) -> None:
    for connection, cluster_id in (("a", "c1"), ("b", "c2"), ("a", "c3")):
        ledger.record_connection(connection, cluster_id)
    assert ledger.connections() == {"a": "c3", "b": "c2"}
