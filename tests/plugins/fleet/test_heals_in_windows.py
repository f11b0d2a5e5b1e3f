"""Heals and windows: which DAG carries a heal out, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from include.domain.request.parse_request import parse_request
from include.domain.run.askers import STARTED_DAG
from rehome import installation
from rehome.fleet import watch_runs
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.fleet.recorded import (
    Rules,
    dead_for_half_an_hour,
    watch,
    without_broker,
)


def test_a_heal_is_a_run_of_the_window_that_is_open(recorded: Cluster, rules: Rules) -> None:
    rules(policies={"dead_broker": "heal"})
    (run,) = watch(*dead_for_half_an_hour(recorded))
    assert run["trigger_dag_id"] == "rebalance_in_window"
    request = parse_request(run["conf"])
    assert not request.approval
    assert not request.dry_run
    assert request.window_end is None, "the window's own"


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
        with pytest.raises(watch_runs.NotHealedError, match="It is over"):
            watch_runs.refuse_over(heal, ledger)


def test_no_heal_starts_while_the_dag_that_carries_it_out_is_paused_and_people_are_alerted(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "heal"})
    monkeypatch.setattr("rehome.run.drivers.dag_paused", lambda *_: True)
    assert watch(*dead_for_half_an_hour(recorded)) == []
    with installation.open_ledger() as ledger:
        (alert,) = [each for each in ledger.alerts() if each.kind == "healing_stopped"]
        assert "is paused in Airflow" in alert.alert["text"]
        monkeypatch.setattr("rehome.run.drivers.dag_paused", lambda *_: None)
        assert len(watch(recorded.snapshot(30, without_broker))) == 1
        assert all(each.closed_at for each in ledger.alerts() if each.kind == "healing_stopped")
