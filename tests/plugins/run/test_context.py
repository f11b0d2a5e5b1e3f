"""A task and its run: who has asked for it, which window it has, and what is read of it once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from airflow.sdk.api.client import ServerResponseError
from airflow.sdk.api.datamodels._generated import DagRunType
from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time.comms import ErrorResponse

from rehome import installation
from rehome.domain.run.askers import Asker, AskerKind, RunDoor
from rehome.ledger.store import Ledger
from rehome.run import run_authority
from rehome.run.context import RunContext
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable, window_of
from tests.ledger.small_plans import make_plan
from tests.plugins.run.asked import CONF, asked_for, by_a_task, run_of, task_of


@pytest.fixture(autouse=True)
def ledger_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")


@pytest.mark.parametrize(
    ("run_type", "kind", "text"),
    [
        (DagRunType.SCHEDULED, AskerKind.SCHEDULE, "the schedule"),
        ("scheduled", AskerKind.SCHEDULE, "the schedule"),
        (DagRunType.ASSET_TRIGGERED, AskerKind.ASSET, "an asset's event"),
        (DagRunType.MANUAL, AskerKind.NOT_KNOWN, "a person or program that Airflow does not name"),
        (DagRunType.OPERATOR_TRIGGERED, AskerKind.TASK, "a task that has not recorded for whom"),
    ],
)
def test_a_run_that_no_person_has_triggered_has_an_asker_with_a_plain_name(
    run_type: Any, kind: AskerKind, text: str
) -> None:
    context = task_of(run_of("r1", run_type=run_type, triggering_user_name=None))
    assert RunContext(context).asker == Asker(kind)
    assert RunContext(context).actor == text


def test_a_window_is_told_apart_from_other_schedules() -> None:
    context = task_of(run_of("r1", run_type=DagRunType.SCHEDULED, triggering_user_name=None))
    context["dag"] = SimpleNamespace(
        timetable=MaintenanceWindowTimetable(window_of("0 1 * * *", timedelta(hours=1)))
    )
    assert RunContext(context).asker == Asker(AskerKind.WINDOW)


def test_a_person_is_a_person_whatever_kind_of_run_it_is() -> None:
    for kind in (DagRunType.MANUAL, DagRunType.ASSET_MATERIALIZATION):
        assert RunContext(task_of(run_of("r1", run_type=kind))).actor == "ann"


def test_a_backfill_is_no_persons_request() -> None:
    """A later one gives a run other parameters, and leaves it the user who had triggered it."""
    run = run_of("r1", run_type=DagRunType.BACKFILL)
    assert RunContext(task_of(run)).asker == Asker(AskerKind.BACKFILL)


@pytest.mark.parametrize("run_type", ["manual", "backfill", DagRunType.MANUAL])
def test_a_run_that_no_schedule_has_made_has_the_timetables_own_window(run_type: Any) -> None:
    """Its data interval is the choice of who has triggered it."""
    until_2030 = datetime(2030, 1, 1, tzinfo=UTC)
    timetable = MaintenanceWindowTimetable(window_of("0 1 * * *", timedelta(hours=4)))
    due = datetime(2026, 11, 26, 2, 30, tzinfo=UTC)
    run = run_of("r1", run_type=run_type, run_after=due, data_interval_end=until_2030)
    context = task_of(run) | {"dag": SimpleNamespace(timetable=timetable)}
    closes = datetime(2026, 11, 26, 5, tzinfo=UTC)
    assert RunContext(context).window_end == closes
    run.run_after = due + timedelta(hours=9)
    assert RunContext(context).window_end == closes, "it is closed by then"
    scheduled = run_of("r2", run_type=DagRunType.SCHEDULED, run_after=due)
    scheduled.data_interval_end = datetime(2026, 11, 26, 6, tzinfo=UTC)
    context["dag_run"] = scheduled
    assert RunContext(context).window_end == scheduled.data_interval_end


@pytest.mark.parametrize(
    ("began", "ends"),
    [("02:30", "05:00"), ("04:30", "08:00"), ("05:30", "05:00"), ("04:30+1", "05:00")],
    ids=["in time", "late, in the next one as well", "too late", "cleared on another day"],
)
def test_a_run_that_begins_late_has_the_newest_window_that_is_open(began: str, ends: str) -> None:
    timetable = MaintenanceWindowTimetable(
        *(window_of(f"0 {hour} * * *", timedelta(hours=4)) for hour in (1, 4))
    )
    run = run_of("r1", run_type=DagRunType.SCHEDULED)
    run.data_interval_end = datetime(2026, 11, 26, 5, tzinfo=UTC)
    day, (hour, minute) = 26 + began.count("+1"), map(int, began.removesuffix("+1").split(":"))
    run.start_date = datetime(2026, 11, day, hour, minute, tzinfo=UTC)
    closes = RunContext(task_of(run) | {"dag": SimpleNamespace(timetable=timetable)}).window_end
    assert closes == datetime(2026, 11, 26, int(ends[:2]), tzinfo=UTC)


def test_a_run_that_a_task_has_started_is_asked_for_by_whom_the_task_has_written_down() -> None:
    """Airflow says ann: it takes the user of the run that holds the task."""
    run = by_a_task("control__1")
    assert RunContext(task_of(run)).asker == Asker(AskerKind.TASK)
    with installation.open_ledger() as ledger:
        ledger.request_run(asked_for("control__1"))
        ledger.request_run(asked_for("watch__1", door=RunDoor.WATCH, asked_by=None))
    assert RunContext(task_of(run)).asker == Asker(AskerKind.PERSON, "bob")
    assert RunContext(task_of(by_a_task("watch__1"))).asker == Asker(AskerKind.WATCHING)


def test_what_watching_has_chosen_is_known_by_the_ledger_and_by_no_run_id() -> None:
    run = by_a_task("watch__1")
    assert RunContext(task_of(run)).chosen == frozenset()
    with installation.open_ledger() as ledger:
        ledger.request_run(asked_for("watch__1", door=RunDoor.WATCH, asked_by=None))
        ledger.request_run(asked_for("control__1"))
    assert RunContext(task_of(run)).chosen == set(CONF)
    assert RunContext(task_of(run_of("watch__1"))).chosen == frozenset()
    assert RunContext(task_of(by_a_task("control__1"))).chosen == frozenset()


@pytest.mark.parametrize(
    ("run", "asked_by"),
    [
        (run_of("manual__1", dag_id="control_reassignment"), "ann"),
        (
            run_of("asset__1", run_type=DagRunType.ASSET_TRIGGERED, triggering_user_name=None),
            None,
        ),
        (by_a_task("another_team"), None),
    ],
)
def test_a_request_is_written_in_the_name_of_who_has_asked_for_the_tasks_own_run(
    run: SimpleNamespace, asked_by: str | None
) -> None:
    with installation.open_ledger() as ledger:
        context = task_of(run, "request")
        run_authority.request_run(RunContext(context), RunDoor.CONTROL, "control__2", CONF)
        found = ledger.requested_run("reassign_partitions", "control__2")
    assert found is not None
    by = found.by_dag_id, found.by_run_id, found.by_task_id
    assert (found.asked_by, by) == (asked_by, (run.dag_id, run.run_id, "request"))
    assert found.has_conf(CONF)


def test_the_ledger_is_opened_when_it_is_first_needed_once_and_closed_with_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened, closed = list[Ledger](), list[Ledger]()
    really = installation.open_ledger

    def open_ledger() -> Ledger:
        opened.append(really())
        return opened[-1]

    def close(ledger: Ledger) -> None:
        closed.append(ledger)

    monkeypatch.setattr(installation, "open_ledger", open_ledger)
    monkeypatch.setattr(Ledger, "close", close)
    with RunContext(task_of(run_of("r1"))) as context:
        assert not opened
        assert context.ledger is context.ledger
        assert not closed
    assert opened == closed == [context.ledger]


def test_settings_stay_as_they_were_until_a_task_that_waits_reads_them_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = RunContext(task_of(run_of("r1")))
    monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "7")
    assert context.settings.poll_interval_s == 7
    monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "8")
    assert context.settings.poll_interval_s == 7
    context.read_anew()
    assert context.settings.poll_interval_s == 8


def test_a_tasks_own_connection_counts_more_than_its_runs_and_a_stated_one_most() -> None:
    named = {"params": {"kafka_config_id": "kafka_of_the_run"}}
    own = named | {"task": SimpleNamespace(kafka_config_id="kafka_of_the_task")}
    found = [RunContext(named), RunContext(own), RunContext(own, "kafka_stated"), RunContext({})]
    connections = ["kafka_of_the_run", "kafka_of_the_task", "kafka_stated", ""]
    assert [each.connection for each in found] == connections


@pytest.mark.parametrize(
    ("dag_id", "drives"), [("rebalance_in_window", True), ("another", False), (None, True)]
)
def test_a_run_drives_the_plans_of_its_own_dag_only(
    dag_id: str | None, drives: bool, tmp_path: Path
) -> None:
    run = {"dag_run": SimpleNamespace(dag_id="rebalance_in_window", run_id="scheduled__2030")}
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_plan(make_plan("p1"), {}, "file:///x", "scheduled__2030", "ann")
        record = replace(ledger.plan("p1"), dag_id=dag_id)
    assert RunContext(run).drives(record) is drives
    assert not RunContext(run).drives(replace(record, run_id="scheduled__2031"))


class Airflow:
    """A task instance that may ask whether a DAG is paused."""

    def get_dag(self, dag_id: str) -> SimpleNamespace:
        if dag_id == "unknown":
            raise AirflowRuntimeError(ErrorResponse())
        if dag_id == "unknown to dag.test":
            gone = httpx.Response(404, request=httpx.Request("GET", "http://127.0.0.1"))
            raise ServerResponseError("not found", request=gone.request, response=gone)
        return SimpleNamespace(is_paused=dag_id == "paused")


def test_whether_a_dag_is_paused_is_asked_of_airflow_and_may_be_unknown() -> None:
    context = RunContext({"ti": Airflow()})
    dags = ("paused", "runs", "unknown", "unknown to dag.test")
    assert [context.dag_paused(dag) for dag in dags] == [True, False, None, None]
    assert RunContext({"ti": SimpleNamespace()}).dag_paused("runs") is None
