"""Heals that the end of a window has paused: which run goes on with them, and when none does.

On real brokers: tests/dags/watching/test_paused_heals.py.
"""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from include.domain.request.parse_request import parse_request
from include.domain.run.states import PlanState
from include.ledger.store import Ledger
from include.warehouse import read_snapshot
from include.watching.kinds import WatchPolicy
from rehome import installation
from rehome.fleet import watch_runs
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.fleet.recorded import (
    DEAD,
    Rules,
    dead_for_half_an_hour,
    watch,
    without_broker,
)

BOUNDS = {"throttle": 7000, "throttle_max": 70_000_000, "on_window_end": "cancel"}


@pytest.fixture
def heal(recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A heal that has begun in a window of yesterday."""
    monkeypatch.setattr("include.watching.respond.HEAD_START", timedelta())
    rules(policies={"dead_broker": "heal"})
    (run,) = watch(*dead_for_half_an_hour(recorded))
    return run


def pause(ledger: Ledger, run: dict[str, Any], *, ended: bool = True) -> str:
    """The run has made a plan, and has ended with its window."""
    plan_id = "paused"
    plan = make_plan(plan_id, move("t", 0, (1, DEAD), (1, 2)), cluster_id=CLUSTER)
    request = {"window_end": "2026-01-06T05:00:00+00:00", **BOUNDS}
    ledger.create_plan(
        plan, request, "file:///nowhere", run["trigger_run_id"], "watch", None,
        "reassign_partitions",
    )  # fmt: skip
    ledger.approve(plan_id, plan.plan_hash, "watch")
    for state in (PlanState.RUNNING, PlanState.PAUSED):
        ledger.transition(plan_id, state, "the window has ended")
    if ended:
        end(ledger, run, plan_id, failed=False)
    return plan_id


def end(ledger: Ledger, run: dict[str, Any], plan_id: str, *, failed: bool) -> None:
    run_id = run["trigger_run_id"]
    ledger.end_watch_start("reassign_partitions", run_id, failed=failed, plan_id=plan_id)


@pytest.fixture
def any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster has no windows any more."""
    monkeypatch.setattr("rehome.fleet.clusters.windows_through", lambda _: ())


def test_a_plan_that_its_window_was_too_short_for_does_not_go_on_in_that_window(
    recorded: Cluster, heal: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with installation.open_ledger() as ledger:
        pause(ledger, heal)
        assert watch(recorded.snapshot(30, without_broker)) == []
    assert "Plan paused stays paused: the next window has not opened yet" in capsys.readouterr().out


def test_one_run_goes_on_with_the_plan_within_the_rules_of_now(
    recorded: Cluster, heal: dict[str, Any], any_time: None, rules: Rules
) -> None:
    rules(policies={"dead_broker": "heal"}, largest_throttle=5000)
    with installation.open_ledger() as ledger:
        plan_id = pause(ledger, heal)
        newest = recorded.snapshot(30)
        (run,) = watch(newest)
        assert [again["trigger_run_id"] for again in watch(newest)] == [run["trigger_run_id"]]
        conf = run["conf"]
        assert (conf["plan_id"], conf["cluster_id"]) == (plan_id, CLUSTER)
        request = parse_request(conf)
        assert (request.throttle_bytes_per_s, request.throttle_max) == (None, 5000)
        assert (request.window_end, request.on_window_end) == (None, "cancel")
        going_on, begun = ledger.watch_starts(CLUSTER)
        assert going_on.about == begun.about
        assert (going_on.policy, going_on.ended_at) == (WatchPolicy.HEAL, None)
        assert watch(recorded.snapshot(40, without_broker)) == [], "it has not ended"


def test_a_plan_waits_until_the_run_that_paused_has_ended_and_is_known_by_that_run(
    recorded: Cluster, heal: dict[str, Any], any_time: None
) -> None:
    with installation.open_ledger() as ledger:
        pause(ledger, heal, ended=False)
        assert watch(recorded.snapshot(30)) == [], "it may still be about to end"
        end(ledger, heal, "", failed=False)
        assert len(watch(recorded.snapshot(40))) == 1


def test_a_heal_that_a_person_has_paused_or_that_the_rules_do_not_allow_any_more_waits(
    recorded: Cluster, heal: dict[str, Any], any_time: None, rules: Rules
) -> None:
    with installation.open_ledger() as ledger:
        plan_id = pause(ledger, heal)
        ledger.request_pause(plan_id, "ann")
        assert watch(recorded.snapshot(30)) == []
        ledger.withdraw_pause(plan_id, "ann")
        rules(policies={"dead_broker": "propose"})
        assert watch(recorded.snapshot(40)) == []
        rules(policies={"dead_broker": "heal"})
        assert len(watch(recorded.snapshot(50))) == 1


def test_a_plan_that_is_given_up_leaves_its_finding_to_another_heal(
    recorded: Cluster, heal: dict[str, Any], any_time: None
) -> None:
    with installation.open_ledger() as ledger:
        plan_id = pause(ledger, heal)
        (run,) = watch(recorded.snapshot(25, without_broker))
        ledger.transition(plan_id, PlanState.CANCELLED, "t-0 has changed")
        end(ledger, run, plan_id, failed=True)
        (anew,) = watch(recorded.snapshot(30, without_broker))
        assert parse_request(anew["conf"]).brokers == (DEAD,)
        assert "plan_id" not in anew["conf"]


def test_going_on_counts_as_a_heal_and_stops_when_it_fails_too_often(
    recorded: Cluster, heal: dict[str, Any], any_time: None, rules: Rules
) -> None:
    rules(policies={"dead_broker": "heal"}, failures_to_stop=1)
    with installation.open_ledger() as ledger:
        plan_id = pause(ledger, heal)
        (run,) = watch(recorded.snapshot(25))
        end(ledger, run, plan_id, failed=True)
        assert watch(recorded.snapshot(30)) == []
        assert "healing_stopped" in {alert.kind for alert in ledger.alerts()}


def test_watching_leaves_plans_alone_that_it_has_not_started(
    recorded: Cluster, heal: dict[str, Any], any_time: None
) -> None:
    with installation.open_ledger() as ledger:
        end(ledger, heal, "", failed=True)
        pause(ledger, {"trigger_run_id": "manual__by_ann"}, ended=False)
        assert watch(recorded.snapshot(30)) == []


def test_a_heal_that_another_run_goes_on_with_still_counts_as_a_heal(
    recorded: Cluster, heal: dict[str, Any], any_time: None
) -> None:
    with installation.open_ledger() as ledger:
        plan_id = pause(ledger, heal)
        ledger.take_up(plan_id, "rebalance_in_window", "last-night", {}, "watch", lease_s=1)
        assert ledger.plan(plan_id).state is PlanState.PAUSED
        (run,) = watch(recorded.snapshot(30))
        assert run["conf"]["plan_id"] == plan_id


def test_a_broker_that_has_just_gone_away_is_away_and_a_dead_one_is_to_be_repaired(
    recorded: Cluster, heal: dict[str, Any]
) -> None:
    """The heal has waited for its slot, and meanwhile the broker was back."""
    run = SimpleNamespace(
        dag_id="reassign_partitions", run_id=heal["trigger_run_id"], conf=heal["conf"]
    )
    gone = read_snapshot(recorded.snapshot(40, without_broker))
    there = read_snapshot(recorded.snapshot(41))
    with installation.open_ledger() as ledger:
        assert watch_runs.away(run, gone, ledger) == frozenset(), "its finding is open"
        watch(recorded.snapshot(30))
        assert watch_runs.away(run, gone, ledger) == {DEAD}
        assert watch_runs.away(run, there, ledger) == frozenset()
        by_hand = SimpleNamespace(dag_id="reassign_partitions", run_id="by hand", conf=run.conf)
        assert watch_runs.away(by_hand, gone, ledger) == frozenset(), "a person knows"
