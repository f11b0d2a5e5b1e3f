"""Who has asked for a run: a person is a person, and everything else has a name of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.api.datamodels._generated import DagRunType

from rehome import installation
from rehome.domain.run.askers import Asker, AskerKind, RunDoor
from rehome.run import run_askers, run_params
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable, window_of
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
    assert run_askers.asker_of(context) == Asker(kind)
    assert run_params.actor_of(context) == text


def test_a_window_is_told_apart_from_other_schedules() -> None:
    context = task_of(run_of("r1", run_type=DagRunType.SCHEDULED, triggering_user_name=None))
    context["dag"] = SimpleNamespace(
        timetable=MaintenanceWindowTimetable(window_of("0 1 * * *", timedelta(hours=1)))
    )
    assert run_askers.asker_of(context) == Asker(AskerKind.WINDOW)


def test_a_person_is_a_person_whatever_kind_of_run_it_is() -> None:
    for kind in (DagRunType.MANUAL, DagRunType.ASSET_MATERIALIZATION):
        assert run_params.actor_of(task_of(run_of("r1", run_type=kind))) == "ann"


def test_a_backfill_is_no_persons_request() -> None:
    """A later one gives a run other parameters, and leaves it the user who had triggered it."""
    run = run_of("r1", run_type=DagRunType.BACKFILL)
    assert run_askers.asker_of(task_of(run)) == Asker(AskerKind.BACKFILL)


@pytest.mark.parametrize("run_type", ["manual", "backfill", DagRunType.MANUAL])
def test_a_run_that_no_schedule_has_made_has_the_timetables_own_window(run_type: Any) -> None:
    """Its data interval is the choice of who has triggered it."""
    until_2030 = datetime(2030, 1, 1, tzinfo=UTC)
    timetable = MaintenanceWindowTimetable(window_of("0 1 * * *", timedelta(hours=4)))
    due = datetime(2026, 11, 26, 2, 30, tzinfo=UTC)
    run = run_of("r1", run_type=run_type, run_after=due, data_interval_end=until_2030)
    context = task_of(run) | {"dag": SimpleNamespace(timetable=timetable)}
    closes = datetime(2026, 11, 26, 5, tzinfo=UTC)
    assert run_params.window_end_of(context) == closes
    run.run_after = due + timedelta(hours=9)
    assert run_params.window_end_of(context) == closes, "it is closed by then"
    scheduled = run_of("r2", run_type=DagRunType.SCHEDULED, run_after=due)
    scheduled.data_interval_end = datetime(2026, 11, 26, 6, tzinfo=UTC)
    context["dag_run"] = scheduled
    assert run_params.window_end_of(context) == scheduled.data_interval_end


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
    closes = run_params.window_end_of(task_of(run) | {"dag": SimpleNamespace(timetable=timetable)})
    assert closes == datetime(2026, 11, 26, int(ends[:2]), tzinfo=UTC)


def test_a_run_that_a_task_has_started_is_asked_for_by_whom_the_task_has_written_down() -> None:
    """Airflow says ann: it takes the user of the run that holds the task."""
    run = by_a_task("control__1")
    assert run_askers.asker_of(task_of(run)) == Asker(AskerKind.TASK)
    with installation.open_ledger() as ledger:
        ledger.request_run(asked_for("control__1"))
        ledger.request_run(asked_for("watch__1", door=RunDoor.WATCH, asked_by=None))
    assert run_askers.asker_of(task_of(run)) == Asker(AskerKind.PERSON, "bob")
    assert run_askers.asker_of(task_of(by_a_task("watch__1"))) == Asker(AskerKind.WATCHING)


def test_what_watching_has_chosen_is_known_by_the_ledger_and_by_no_run_id() -> None:
    run = by_a_task("watch__1")
    assert run_askers.chosen_in(run) == frozenset()
    with installation.open_ledger() as ledger:
        ledger.request_run(asked_for("watch__1", door=RunDoor.WATCH, asked_by=None))
        ledger.request_run(asked_for("control__1"))
    assert run_askers.chosen_in(run) == set(CONF)
    assert run_askers.chosen_in(run_of("watch__1")) == frozenset()
    assert run_askers.chosen_in(by_a_task("control__1")) == frozenset()


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
        run_askers.request_run(context, ledger, RunDoor.CONTROL, "control__2", CONF)
        found = ledger.requested_run("reassign_partitions", "control__2")
    assert found is not None
    by = found.by_dag_id, found.by_run_id, found.by_task_id
    assert (found.asked_by, by) == (asked_by, (run.dag_id, run.run_id, "request"))
    assert found.has_conf(CONF)
