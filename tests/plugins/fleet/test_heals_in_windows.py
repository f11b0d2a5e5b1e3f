"""Heals and windows: which DAG carries a heal out, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from rehome import installation
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.askers import STARTED_DAG
from rehome.domain.run.states import PlanState
from rehome.fleet import watch_runs
from rehome.fleet.clusters import WINDOW_DAG
from tests.ledger.people import ask
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.fleet.recorded import (
    Rules,
    dead_for_half_an_hour,
    watch,
    without_broker,
)


@pytest.mark.slow
def test_a_heal_is_a_run_of_the_window_that_is_open(recorded: Cluster, rules: Rules) -> None:
    rules(policies={"dead_broker": "heal"})
    (run,) = watch(*dead_for_half_an_hour(recorded))
    assert run["trigger_dag_id"] == "rebalance_in_window"
    request = parse_request(run["conf"])
    assert not request.approval
    assert not request.dry_run
    assert request.window_end is None, "the window's own"


@pytest.mark.slow
def test_while_no_window_is_open_a_heal_is_planned_and_handed_over(
    recorded: Cluster,
    rules: Rules,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What its dry run does then: tests/dags/watching/test_handed_over_heals.py."""
    rules(policies={"dead_broker": "heal"}, heals_a_day=1)
    opens = (datetime.now(UTC) + timedelta(hours=12)).hour
    monkeypatch.setenv("REHOME_WINDOW_CRON", f"0 {opens} * * *")
    monkeypatch.setenv("REHOME_WINDOW_DURATION_S", "60")
    (run,) = watch(*dead_for_half_an_hour(recorded))
    assert run["trigger_dag_id"] == STARTED_DAG
    assert parse_request(run["conf"]).dry_run
    started = SimpleNamespace(dag_id=STARTED_DAG, run_id=run["trigger_run_id"])
    by_ann = SimpleNamespace(dag_id=STARTED_DAG, run_id="manual__by_ann")
    plan = make_plan("p1", move("t", 0, (1, 3), (1, 2)), cluster_id=CLUSTER)
    with installation.open_ledger() as ledger:
        ledger.create_plan(plan, {"dry_run": True}, "file:///nowhere", started.run_id, "watching")
        watch_runs.hand_over(by_ann, ledger, "p1", "ann")
        assert ledger.handed_over(CLUSTER) == []
        watch_runs.hand_over(started, ledger, "p1", "watching")
        (waiting,) = ledger.handed_over(CLUSTER)
        assert waiting.plan_id == "p1"
        heal = watch_runs.heal_of(waiting, ledger)
        assert heal is not None
        assert watch(recorded.snapshot(30, without_broker)) == [], "the window carries it out"
        assert "Plan p1 is handed over to the windows" in capsys.readouterr().out
        watch_runs.refuse_over(heal, ledger)

        monkeypatch.setenv("REHOME_WINDOW_CRON", "0 0 * * *")
        monkeypatch.setenv("REHOME_WINDOW_DURATION_S", str(24 * 3600.0 - 1))
        (now,) = watch(recorded.snapshot(40, without_broker))
        assert now["trigger_dag_id"] == "rebalance_in_window", "its own run has left it"
        watch(recorded.snapshot(50))
        with pytest.raises(watch_runs.HealOverError, match="to heal is over"):
            watch_runs.refuse_over(heal, ledger)


@pytest.mark.slow
def test_a_person_who_is_asked_keeps_no_dead_broker_from_being_healed(
    recorded: Cluster, rules: Rules
) -> None:
    """Though the DAG of the window has one run at a time, and a heal waits behind already."""
    rules(policies={"dead_broker": "heal"})
    (behind,) = watch(*dead_for_half_an_hour(recorded))
    assert behind["trigger_dag_id"] == WINDOW_DAG
    plan = make_plan("p1", move("t", 0, (1, 3), (1, 2)), cluster_id=CLUSTER)
    asking = "file:///nowhere", "scheduled__1", "ann", "kafka_default", WINDOW_DAG
    with installation.open_ledger() as ledger:
        assert watch(recorded.snapshot(30, without_broker)) == [], "it is on its way"
        ledger.create_plan(plan, {"approval": True}, *asking)
        ask(ledger, "p1", Terms(plan.plan_hash, 5_000_000))
        (now,) = watch(recorded.snapshot(40, without_broker))
        assert now["trigger_dag_id"] == STARTED_DAG
        request = parse_request(now["conf"])
        assert not request.dry_run
        assert request.window_end is not None
        assert request.window_end > datetime.now(UTC)
        assert watch(recorded.snapshot(50, without_broker)) == [], "once"
        start = ledger.watch_start(WINDOW_DAG, behind["trigger_run_id"])
        assert start is not None
        assert watch_runs.waits_behind(start, ledger.plan("p1"), ledger)
        ledger.begin_requested(WINDOW_DAG, start.run_id, datetime.now(UTC))
        assert not watch_runs.waits_behind(start, ledger.plan("p1"), ledger)

        found = watch_runs.asking(ledger, CLUSTER, "kafka_default")
        assert found is not None
        ledger.transition("p1", PlanState.CANCELLED, "its run was ended by hand")
        assert watch_runs.asking(ledger, CLUSTER, "kafka_default") is None


@pytest.mark.slow
def test_a_heal_of_what_is_worst_that_was_handed_over_is_urgent_while_it_is_to_be_healed(
    recorded: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "heal", "empty_broker": "heal"})
    (start,) = watch(*dead_for_half_an_hour(recorded))
    plan = make_plan("p1", move("t", 0, (1, 3), (1, 2)), cluster_id=CLUSTER)
    by = SimpleNamespace(dag_id=start["trigger_dag_id"], run_id=start["trigger_run_id"])
    to = CLUSTER, WINDOW_DAG, "kafka_default"
    with installation.open_ledger() as ledger:
        ledger.create_plan(plan, {"dry_run": True}, "file:///nowhere", by.run_id, "watching")
        assert watch_runs.urgent(ledger, *to) is None
        watch_runs.hand_over(by, ledger, "p1", "watching")
        found = watch_runs.urgent(ledger, *to)
        assert found is not None
        assert found.subject == "broker 3"
        rules(policies={"dead_broker": "watch"})
        assert watch_runs.urgent(ledger, *to) is None
        rules(policies={"dead_broker": "heal"})
        watch(recorded.snapshot(40))
        assert watch_runs.urgent(ledger, *to) is None, "it is over"


@pytest.mark.slow
def test_no_heal_starts_while_the_dag_that_carries_it_out_is_paused_and_people_are_alerted(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "heal"})
    monkeypatch.setattr("rehome.run.context.RunContext.dag_paused", lambda *_: True)
    assert watch(*dead_for_half_an_hour(recorded)) == []
    with installation.open_ledger() as ledger:
        (alert,) = [each for each in ledger.alerts() if each.kind == "healing_stopped"]
        assert "is paused in Airflow" in alert.alert["text"]
        monkeypatch.setattr("rehome.run.context.RunContext.dag_paused", lambda *_: None)
        assert len(watch(recorded.snapshot(30, without_broker))) == 1
        assert all(each.closed_at for each in ledger.alerts() if each.kind == "healing_stopped")
