"""What ends a task goes to the log, to Airflow and to the ledger, whatever it is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    AirflowTaskTimeout,
    DownstreamTasksSkipped,
    TaskDeferralError,
)

from rehome import installation
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.errors import PlanConflictError
from rehome.run.causes.errors import AskedAgainError, EndedError
from rehome.run.causes.operator import RecordedOperator
from rehome.run.causes.recorded import CAUSE_XCOM, of_run, record_cause, silent, tell_end
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.context import RunContext

DAG, RUN = "reassign_partitions", "run-1"
AT = datetime(2030, 1, 1, tzinfo=UTC)


class Run:
    """A run of one task, as Airflow hands it to an operator."""

    def __init__(self, attempt: int = 1) -> None:
        self.xcoms: dict[str, Any] = {}
        ti = SimpleNamespace(
            try_number=attempt,
            xcom_push=self.xcoms.__setitem__,
            xcom_pull=lambda task_ids, key: self.xcoms.get(key),
        )
        self.ti = ti
        self.context: dict[str, Any] = {
            "dag_run": SimpleNamespace(
                dag_id=DAG, run_id=RUN, conf={}, clear_number=0, run_after=AT
            ),
            "ti": ti,
            "task": SimpleNamespace(task_id="snapshot"),
            "dag": SimpleNamespace(task_ids=["snapshot"]),
            "params": {"plan_id": "p1", "kafka_config_id": "kafka_default"},
        }

    @property
    def left(self) -> Cause:
        return Cause.from_json(self.xcoms[CAUSE_XCOM])


@pytest.fixture(autouse=True)
def ledger_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")


def _in_ledger() -> Cause | None:
    with installation.open_ledger() as ledger:
        return ledger.cause_of(DAG, RUN)


def test_an_error_of_rehomes_is_a_cause_with_its_remedy(caplog: pytest.LogCaptureFixture) -> None:
    run = Run()
    with pytest.raises(AirflowFailException), record_cause(RunContext(run.context)):
        raise PlanConflictError("It ended", state_left="Nothing moved.", next_step="Plan anew")
    found = run.left
    assert (found.text, found.left, found.remedy) == ("It ended.", "Nothing moved.", "Plan anew.")
    assert (found.kind, found.task_id, found.attempt) == (CauseKind.PLAN_STATE, "snapshot", 1)
    assert _in_ledger() == found
    assert "It ended. Nothing moved. Plan anew." in caplog.text
    with installation.open_ledger() as ledger:
        (of_plan,) = ledger.ended_runs_of("p1")
    assert (of_plan.run_id, of_plan.connection) == (RUN, "kafka_default")


@pytest.mark.parametrize(
    ("error", "kind", "first"),
    [
        (ZeroDivisionError("by\nzero"), CauseKind.FAULT, "ZeroDivisionError: by."),
        (KeyError(), CauseKind.FAULT, "KeyError."),
        (AirflowException("told"), CauseKind.FAULT, "AirflowException: told."),
        (AirflowTaskTimeout("late"), CauseKind.TIMEOUT, "AirflowTaskTimeout: late."),
    ],
)
def test_of_an_error_that_nobody_foresaw_the_first_line_and_where_the_rest_is(
    error: BaseException, kind: CauseKind, first: str
) -> None:
    run = Run()
    with pytest.raises(type(error)), record_cause(RunContext(run.context)):
        raise error
    assert (run.left.kind, run.left.text) == (kind, first)
    assert "log of the task snapshot" in run.left.remedy
    assert _in_ledger() == run.left


@pytest.mark.parametrize(
    "told",
    [AirflowSkipException("skip"), AskedAgainError("again"), DownstreamTasksSkipped(tasks=[])],
    ids=lambda told: type(told).__name__,
)
def test_what_only_tells_airflow_something_is_no_cause(told: Exception) -> None:
    run = Run()
    with pytest.raises(type(told)), record_cause(RunContext(run.context)):
        raise told
    assert run.xcoms == {}
    assert _in_ledger() is None


def test_a_later_attempt_that_succeeds_takes_the_cause_back_but_not_its_own() -> None:
    with pytest.raises(AirflowException), record_cause(RunContext(Run().context)):
        raise EndedError(TaskEnd(TaskReason.JOB_FAILED, said="It failed"))
    second = Run(attempt=2)
    with record_cause(RunContext(second.context)):
        tell_end(RunContext(second.context), TaskEnd(TaskReason.REJECTED, "p1", who="Ann"))
    found = _in_ledger()
    assert found is not None
    assert found.kind is CauseKind.REJECTED


def test_where_the_ledger_is_away_log_and_airflow_have_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}")  # a folder
    run = Run()
    with (
        pytest.raises(AirflowException, match="cannot be opened"),
        record_cause(RunContext(run.context)),
    ):
        installation.open_ledger()
    assert run.left.kind is CauseKind.LEDGER
    assert "The ledger cannot have what ended the run" in caplog.text
    assert of_run(RunContext(run.context), away=True) == run.left


def test_where_airflow_is_away_too_the_tasks_own_error_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}")
    run = Run()

    def away(*_: object) -> None:
        raise ConnectionError("no API")

    run.ti.xcom_push = away
    with (
        pytest.raises(AirflowFailException, match="It ended"),
        record_cause(RunContext(run.context)),
    ):
        raise PlanConflictError("It ended")


def test_a_task_that_says_nothing_is_found_by_its_state() -> None:
    run = Run()
    tasks = [SimpleNamespace(task_id=name) for name in ("snapshot", "plan", "verdict")]
    run.context["dag"].topological_sort = lambda: tasks
    states = {"snapshot": "success", "plan": "failed", "verdict": "failed"}
    run.ti.get_task_states = lambda dag_id, run_ids: {RUN: states}
    found = silent(RunContext(run.context))
    assert found is not None
    assert (found.kind, found.task_id) == (CauseKind.SILENT, "plan")
    states["plan"] = states["verdict"] = "success"
    assert silent(RunContext(run.context)) is None


def test_every_way_out_of_an_operator_is_recorded() -> None:
    class Ending(RecordedOperator):
        def step(self, context: Any) -> None:
            raise EndedError(TaskEnd(TaskReason.GATE_REFUSED, said="The gate is shut"))

        def go_on(self, context: Any) -> None:
            raise EndedError(TaskEnd(TaskReason.DRY_RUN_REFUSES, said="It is refused"))

    task, ways = Ending(task_id="snapshot"), (Run(), Run(2), Run(3))
    with pytest.raises(AirflowFailException, match="The gate is shut"):
        task.execute(ways[0].context)
    with pytest.raises(AirflowFailException, match="It is refused"):
        task.resume_execution("go_on", {}, ways[1].context)
    lines = {"error": "Trigger failure", "traceback": ["Traceback …\n", "ValueError: no\n"]}
    with pytest.raises(
        AirflowException, match="trigger of the task snapshot has failed: ValueError: no"
    ):
        task.resume_execution("__fail__", lines, ways[2].context)
    kinds = [way.left.kind for way in ways]
    assert kinds == [CauseKind.GATE, CauseKind.DRY_RUN, CauseKind.TRIGGER]
    assert TaskDeferralError.__name__ not in ways[2].left.text
