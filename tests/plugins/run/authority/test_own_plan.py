"""Windows that make no plan of their own: what their runs may do, by the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.api.datamodels._generated import DagRunType

from rehome import installation
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.fleet import bound
from rehome.ledger.store import Ledger
from rehome.ledger.stores.watched.starts import StartRecord
from rehome.operators.plan import PlanReassignmentOperator
from rehome.run.authority import own_plan
from rehome.run.context import RunContext
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable, window_of
from tests.ledger.small_plans import make_plan, move
from tests.plugins.run.asked import run_of, task_of

CLUSTER = "cluster-1"
WINDOWS = MaintenanceWindowTimetable(window_of("* * * * *", timedelta(minutes=1)))
NOW = datetime.now(UTC)


def in_window(by: str | None = None, **given: Any) -> Any:
    """A task of a run that its window has started, or a person."""
    kind = DagRunType.SCHEDULED if by is None else DagRunType.MANUAL
    run = run_of(
        "scheduled__1",
        dag_id="rebalance_in_window",
        run_type=kind,
        triggering_user_name=by,
        **given,
    )
    context = task_of(run, "plan", kafka_config_id="kafka_default")
    context["ti"] = SimpleNamespace(xcom_pull=lambda **_: None)
    return context | {"dag": SimpleNamespace(timetable=WINDOWS)}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Of a cluster that the connection is known to lead to, and whose windows make no plan."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    monkeypatch.setenv("REHOME_WINDOW_OWN_PLAN", "false")
    with installation.open_ledger() as opened:
        opened.record_connection("kafka_default", CLUSTER)
        yield opened


def planned(ledger: Ledger) -> None:
    """A dry run of another DAG has planned p1."""
    plan = make_plan("p1", move("t", 0, (1,), (2,)), cluster_id=CLUSTER)
    asked = {"dry_run": True}
    ledger.create_plan(plan, asked, "file:///p1", "r1", "ann", dag_id="reassign_partitions")


def test_a_window_s_own_run_makes_none_where_its_key_says_so(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not own_plan.may_be_made(RunContext(in_window()))
    assert own_plan.is_over(RunContext(in_window()))
    with pytest.raises(own_plan.NoOwnPlanError):
        own_plan.require(RunContext(in_window()))
    monkeypatch.setenv("REHOME_WINDOW_OWN_PLAN", "true")
    assert own_plan.may_be_made(RunContext(in_window()))
    assert not own_plan.is_idle(RunContext(in_window()))


@pytest.mark.slow
def test_windows_that_a_cluster_gets_later_make_plans_where_that_is_said(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its DAG is not paused when it is made, so nobody has unpaused it for that."""
    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    before, windows = (
        "clusters: {main: {connection: kafka_default",
        ', windows: [{cron: "* * * * *", hours: 1}]',
    )

    def seen(text: str) -> None:
        path.write_text(text + "}}")
        bound.record_binding(RunContext(task_of(run_of("r1")), "kafka_default"), CLUSTER)

    seen(before + windows)
    assert own_plan.may_be_made(RunContext(in_window())), "it has always had them"
    seen(before)
    seen(before + windows)
    assert not own_plan.may_be_made(RunContext(in_window()))
    assert "it had none before, and own_plan is not true" in own_plan.idle_note(
        RunContext(in_window())
    )
    assert own_plan.may_be_made(RunContext(in_window(by="ann")))
    seen(before + windows + ", own_plan: true")
    assert own_plan.may_be_made(RunContext(in_window()))
    seen("clusters: {other: {connection: kafka_other")
    seen(before + windows + ", own_plan: false")
    assert "for own_plan is false" in own_plan.idle_note(RunContext(in_window()))


def test_what_has_been_asked_for_is_made_all_the_same(ledger: Ledger) -> None:
    """By a person; by watching, to heal; and what follows a plan up."""
    assert own_plan.may_be_made(RunContext(in_window(by="ann")))
    assert own_plan.may_be_made(RunContext(task_of(run_of("r1")))), "another DAG has no window"
    follow_up = in_window()
    follow_up["task"] = SimpleNamespace(task_id="follow_up.plan")
    assert own_plan.may_be_made(RunContext(follow_up))
    about = (FindingKind.DEAD_BROKER, "broker 3", NOW)
    start = ("rebalance_in_window", "scheduled__1", CLUSTER, *about, WatchPolicy.HEAL, NOW, None)
    ledger.record_watch_start(StartRecord(*start))
    assert own_plan.may_be_made(RunContext(in_window()))


@pytest.mark.slow
def test_it_is_idle_where_no_plan_waits_for_its_window(ledger: Ledger) -> None:
    context = in_window()
    assert own_plan.is_idle(RunContext(context))
    assert own_plan.idle_note(RunContext(context)).startswith("Nothing to do: no plan waits")
    planned(ledger)
    assert own_plan.is_idle(RunContext(context)), "nobody has handed it over"
    ledger.hand_over("p1", "ann")
    assert not own_plan.is_idle(RunContext(context))

    ledger.approve("p1", ledger.plan("p1").plan_hash, "ann")
    ledger.claim("p1")
    ledger.transition("p1", PlanState.PAUSED, "the window has ended")
    assert not own_plan.is_idle(RunContext(context)), "it resumes it"
    ledger.request_pause("p1", "ann")
    assert own_plan.is_idle(RunContext(context)), "a person's pause is a person's to end"
    assert "plan p1 is paused on this cluster" in own_plan.idle_note(RunContext(context))


def test_of_a_cluster_that_is_not_known_yet_the_brokers_are_asked(ledger: Ledger) -> None:
    context = in_window()
    context["params"] = {"kafka_config_id": "kafka_new"}
    assert not own_plan.is_idle(RunContext(context))
    assert own_plan.is_over(RunContext(context))


def test_a_cleared_task_makes_no_plan_either(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehome.run.run_authority.refuse_unasked", lambda _: None)
    with pytest.raises(own_plan.NoOwnPlanError):
        PlanReassignmentOperator(task_id="plan").step(RunContext(in_window()))
