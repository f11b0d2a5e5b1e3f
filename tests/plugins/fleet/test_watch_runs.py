"""Paused heals, which watching leaves to their window; and brokers that are away.

In a window: tests/dags/watching/test_paused_heals.py.
"""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.states import PlanState
from rehome.fleet import watch_runs
from rehome.ledger.store import Ledger
from rehome.warehouse import read_snapshot
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.fleet.recorded import (
    DEAD,
    Rules,
    dead_for_half_an_hour,
    watch,
    without_broker,
)


@pytest.fixture
def heal(recorded: Cluster, rules: Rules) -> dict[str, Any]:
    """A heal that has begun in a window."""
    rules(policies={"dead_broker": "heal"})
    (run,) = watch(*dead_for_half_an_hour(recorded))
    return run


def pause(ledger: Ledger, run: dict[str, Any]) -> str:
    """The run has made a plan, and has ended with its window."""
    run_id = run["trigger_run_id"]
    plan = make_plan("paused", move("t", 0, (1, DEAD), (1, 2)), cluster_id=CLUSTER)
    dag_id = run["trigger_dag_id"]
    ledger.create_plan(plan, {}, "file:///nowhere", run_id, "watch", None, dag_id)
    ledger.approve(plan.plan_id, plan.plan_hash, "watch")
    for state in (PlanState.RUNNING, PlanState.PAUSED):
        ledger.transition(plan.plan_id, state, "the window has ended")
    ledger.end_watch_start(dag_id, run_id, failed=False, plan_id=plan.plan_id)
    return plan.plan_id


@pytest.mark.slow
def test_watching_leaves_a_paused_heal_to_its_window_and_begins_another_when_that_is_given_up(
    recorded: Cluster, heal: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with installation.open_ledger() as ledger:
        plan_id = pause(ledger, heal)
        assert watch(recorded.snapshot(30, without_broker)) == []
        assert f"Run {heal['trigger_run_id']} is under way, or its" in capsys.readouterr().out
        ledger.transition(plan_id, PlanState.CANCELLED, "t-0 has changed")
        assert watch(recorded.snapshot(40, without_broker)) == [], "not within half an hour"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rehome.watching.last_attempt.FIRST_WAIT", timedelta())
            (anew,) = watch(recorded.snapshot(50, without_broker))
    assert parse_request(anew["conf"]).brokers == (DEAD,)
    assert "plan_id" not in anew["conf"]


@pytest.mark.slow
def test_a_broker_that_has_just_gone_away_is_away_and_a_dead_one_is_to_be_repaired(
    recorded: Cluster, heal: dict[str, Any]
) -> None:
    """The heal has waited for its slot, and meanwhile the broker was back."""
    run = SimpleNamespace(dag_id=heal["trigger_dag_id"], run_id=heal["trigger_run_id"])
    gone = read_snapshot(recorded.snapshot(40, without_broker))
    there = read_snapshot(recorded.snapshot(41))
    with installation.open_ledger() as ledger:
        start = watch_runs.heal_by(run, ledger)
        assert start is not None
        watch_runs.refuse_away(start, gone, ledger)  # its finding is open
        watch(recorded.snapshot(30))
        with pytest.raises(watch_runs.BrokerAwayError, match=f"Broker {DEAD} is not alive"):
            watch_runs.refuse_away(start, gone, ledger)
        watch_runs.refuse_away(start, there, ledger)
