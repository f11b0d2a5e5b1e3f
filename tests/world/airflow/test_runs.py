"""Airflow's states around the operators' own methods: attempts, deferral, clears, marks."""

from __future__ import annotations

import pytest

from rehome.domain.run.states import PlanState
from world.airflow.runs import DagRun
from world.airflow.shape import CONTROL, REASSIGN
from world.airflow.states import TaskState
from world.airflow.task_runs import NOTICED_S
from world.running.trace import Trace
from world.script import Do, Plan, Script, Topic, What
from world.stage import Stage

TOPIC = Topic("t", ((1, 2), (2, 3)), 40_000_000)
PLAN = Plan("A", (("t", 0, (3, 2)), ("t", 1, (2, 4))))
START = Do(1.0, "A", What.START, (0,))


def played(*does: Do) -> tuple[Stage, DagRun]:
    """A stage, and its run of reassign_partitions."""
    script = Script(1, 4, (TOPIC,), (PLAN,), does=(START, *does), quiet_s=200.0)
    stage = Stage(script, Trace())
    stage.run()
    return stage, stage.rehomes["A"].airflow.runs[0]


def state(stage: Stage) -> PlanState:
    """Of its only plan."""
    (record,) = stage.records.values()
    return record.state


def names(stage: Stage) -> list[str]:
    """Of all processes of the installation."""
    return [actor.name.partition(":")[2] for actor in stage.rehomes["A"].airflow.spawned]


@pytest.mark.slow
def test_the_trigger_polls_and_wakes_the_task_that_has_deferred_to_it() -> None:
    stage, run = played()
    progress = [name for name in names(stage) if name.startswith("run-1.progress")]
    assert progress[:3] == [
        "run-1.progress",
        "run-1.progress.trigger",
        "run-1.progress.trigger.thread",
    ]
    assert progress.count("run-1.progress") == progress.count("run-1.progress.trigger") + 1
    assert run.tasks["progress"].try_number == 1
    assert run.xcoms["plan", "return_value"] in stage.records


@pytest.mark.slow
def test_a_task_that_is_cleared_while_it_waits_runs_again_with_its_setups() -> None:
    stage, run = played(Do(30.0, "A", What.CLEAR, ("progress",)))
    again = {name for name, task in run.tasks.items() if task.try_number > 1}
    assert again == {"snapshot", "throttle", "progress"}
    assert run.info.clear_number == 1
    assert state(stage) is PlanState.DONE


def test_a_task_that_is_marked_failed_while_it_waits_leaves_the_rest_to_the_teardowns() -> None:
    stage, run = played(Do(30.0, "A", What.MARK, ("failed",)))
    states = run.states()
    assert states["progress"] is TaskState.FAILED
    assert states["clear_throttle"] is TaskState.SUCCESS
    assert states["verify"] is TaskState.UPSTREAM_FAILED
    assert states["verdict"] is TaskState.FAILED
    assert state(stage) is PlanState.FAILED


def test_a_task_that_is_marked_a_success_has_not_moved_anything() -> None:
    stage, run = played(Do(30.0, "A", What.MARK, ("success",)))
    assert run.states()["progress"] is TaskState.SUCCESS
    assert run.states()["verify"] is TaskState.FAILED, "the ledger knows better"
    assert state(stage) is PlanState.FAILED


@pytest.mark.parametrize("at_s", [12.2, 30.0])
def test_a_process_that_is_killed_is_tried_again(at_s: float) -> None:
    stage, run = played(Do(at_s, "A", What.KILL))
    assert state(stage) is PlanState.DONE
    assert run.ended_at is not None
    assert run.ended_at > at_s + NOTICED_S
    tries = {name: task.try_number for name, task in run.tasks.items()}
    assert tries["throttle"] == (2 if at_s < 15 else 1)
    killed = "progress.trigger" if at_s > 15 else "throttle"
    assert names(stage).count(f"run-1.{killed}") >= 2


def test_of_a_deleted_run_nothing_is_executed_any_more() -> None:
    stage, run = played(Do(30.0, "A", What.DELETE_RUN))
    assert run.states()["clear_throttle"] is TaskState.NONE
    assert state(stage) is PlanState.CANCELLED


def test_a_paused_dag_starts_no_task_and_its_trigger_goes_on() -> None:
    stage, _ = played(Do(25.0, "A", What.PAUSE_DAG), Do(150.0, "A", What.UNPAUSE_DAG))
    assert state(stage) is PlanState.DONE
    assert stage.rehomes["A"].airflow.pauses == {REASSIGN: [(25.0, 150.0)]}
    after = [
        actor.began_at
        for actor in stage.rehomes["A"].airflow.spawned
        if actor.name == "A:run-1.progress"
    ]
    assert not [at for at in after if 27.0 < at < 150.0]


@pytest.mark.slow
def test_what_a_person_asks_is_a_run_of_its_own_that_starts_another() -> None:
    stage, _ = played(Do(150.0, "A", What.ROLL_BACK))
    airflow = stage.rehomes["A"].airflow
    (control,) = (run for run in airflow.others if run.graph.dag_id == CONTROL)
    assert set(control.states().values()) == {TaskState.SUCCESS}
    assert airflow.runs[1].run_id == f"control__{control.run_id}"
    assert airflow.runs[1].info.triggering_user_name == "alice"
    states = sorted(record.state for record in stage.records.values())
    assert states == [PlanState.DONE, PlanState.ROLLED_BACK]
