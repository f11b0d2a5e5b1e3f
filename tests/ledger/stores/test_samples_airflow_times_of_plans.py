"""How soon Airflow acted, read from the ledger."""

from __future__ import annotations

import pytest

from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.run.timing import RunTiming
from rehome.ledger.store import Ledger
from rehome.ledger.stores.samples import TIMED_RUNS
from tests.execution.observed import T0, seen
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan


@pytest.fixture
def clock() -> SetClock:
    return SetClock(lambda: T0)


def carry_out(ledger: Ledger, clock: SetClock, plan_id: str, start_s: float, wake_s: float) -> None:
    plan = make_plan(plan_id, cluster_id=plan_id)
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
    ledger.approve(plan_id, plan.plan_hash, "ann")
    ledger.claim(plan_id)
    clock.pass_s(start_s)
    ledger.admit(plan_id, plan.moves, seen(plan), 1000)
    for seconds in (10, wake_s):
        clock.pass_s(seconds)
        ledger.add_samples(plan_id, [], ProgressSample(clock(), 0, 100, 0, 2, 2))
    for each in plan.moves:
        ledger.settle(plan_id, each.partition, MoveState.DONE)
    ledger.transition(plan_id, PlanState.DONE, "all done")


@pytest.mark.slow
def test_timings_are_of_the_newest_plans_that_are_done(ledger: Ledger, clock: SetClock) -> None:
    assert ledger.run_timings() == []
    for number in range(TIMED_RUNS + 2):
        carry_out(ledger, clock, f"p{number}", start_s=number + 1, wake_s=3)
        clock.pass_s(1)
    unfinished = make_plan("p-running", cluster_id="other")
    ledger.create_plan(unfinished, {}, "file:///x", "run-2", "ann")
    ledger.approve("p-running", unfinished.plan_hash, "ann")
    ledger.claim("p-running")
    expected = [RunTiming(number + 1, 3) for number in reversed(range(2, TIMED_RUNS + 2))]
    assert ledger.run_timings() == expected


def test_a_plan_without_moves_says_nothing(ledger: Ledger, clock: SetClock) -> None:
    plan = make_plan("p1")
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
    ledger.approve("p1", plan.plan_hash, "ann")
    ledger.claim("p1")
    clock.pass_s(5)
    ledger.transition("p1", PlanState.DONE, "nothing to do")
    assert ledger.run_timings() == []
