"""What a task starts comes from the ledger, whatever XComs say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, DagRunTriggerException

from rehome import installation
from rehome.domain.run.askers import RunDoor
from rehome.ledger.store import Ledger
from rehome.operators.requested.start_run import StartRequestedRunOperator
from tests.plugins.run.asked import BEGUN, CONF, asked_for, run_of, task_of


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    with installation.open_ledger() as opened:
        yield opened


def start(run_id: Any, door: str = "control") -> DagRunTriggerException:
    """What Airflow is told to trigger."""
    task = StartRequestedRunOperator(task_id="start", door=door, trigger_run_id=run_id)
    run = run_of("manual__1", dag_id="control_reassignment")
    with pytest.raises(DagRunTriggerException) as caught:
        task.execute({**task_of(run), "task": task})
    return caught.value


def test_a_run_gets_the_parameters_that_were_written_down_and_is_started_once(
    ledger: Ledger,
) -> None:
    ledger.request_run(asked_for("control__1"))
    told = start("control__1")
    assert (told.trigger_dag_id, told.dag_run_id) == ("reassign_partitions", "control__1")
    assert told.conf == CONF
    assert (told.skip_when_already_exists, told.reset_dag_run) == (True, False)


def test_a_heal_is_a_run_of_the_dag_that_it_was_asked_for(ledger: Ledger) -> None:
    asked = replace(asked_for("watch__1", door=RunDoor.WATCH), dag_id="rebalance_in_window__berlin")
    ledger.request_run(asked)
    assert start("watch__1", "watch").trigger_dag_id == "rebalance_in_window__berlin"


@pytest.mark.parametrize("run_id", ["control__2", "", None, {"conf": {}}, "watch__1"])
def test_an_id_without_a_request_through_the_same_door_starts_nothing(
    ledger: Ledger, run_id: Any
) -> None:
    ledger.request_run(asked_for("watch__1", door=RunDoor.WATCH))
    task = StartRequestedRunOperator(task_id="start", door="control", trigger_run_id=run_id)
    with pytest.raises(AirflowFailException, match="The ledger has no request"):
        task.execute({**task_of(run_of("manual__1", dag_id="control_reassignment"))})


def test_an_old_request_starts_nothing_when_its_task_is_cleared(ledger: Ledger) -> None:
    ledger.request_run(asked_for("control__1", at=BEGUN - timedelta(hours=25)))
    task = StartRequestedRunOperator(task_id="start", door="control", trigger_run_id="control__1")
    with pytest.raises(AirflowFailException, match="bob has asked for run control__1 at"):
        task.execute(task_of(run_of("manual__1")))
