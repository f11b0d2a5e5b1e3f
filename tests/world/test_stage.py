"""Real code in a world: a plan that nothing disturbs, and one whose processes die."""

from __future__ import annotations

import pytest

from include.domain.kafka import TopicPartition
from include.domain.run.states import PlanState
from world.judge.judge import judge
from world.rehome.airflow import TaskState
from world.rehome.tasks import Task
from world.running.trace import Trace
from world.script import Blow, Do, Plan, Script, Strike, Topic, What
from world.stage import Stage

TOPIC = Topic("t", ((1, 2), (2, 3)), 40_000_000)
PLAN = Plan("A", (("t", 0, (3, 2)), ("t", 1, (2, 4))))
START = Do(1.0, "A", What.START, (0,))


def played(*does: Do, strikes: tuple[Strike, ...] = ()) -> Stage:
    script = Script(1, 4, (TOPIC,), (PLAN,), does=(START, *does), strikes=strikes, quiet_s=200.0)
    stage = Stage(script, Trace())
    stage.run()
    return stage


def test_a_plan_that_nothing_disturbs_is_done_and_leaves_nothing() -> None:
    stage = played()
    assert stage.records["A-0"].state is PlanState.DONE
    (run,) = stage.rehomes["A"].airflow.runs
    assert set(run.states.values()) == {TaskState.SUCCESS}
    found = stage.model.world.partition(TopicPartition("t", 0))
    assert found is not None
    assert found[1].replicas == (3, 2)
    assert {said.where for said in stage.statements} > {Task.VERIFY, Task.CLEAR_THROTTLE}
    assert judge(stage.seen()).violations == ()


@pytest.mark.parametrize("point", [20, 40, 61, 80, 100, 130, 180, 220])
def test_a_process_that_is_killed_is_followed_by_another_that_ends_the_plan(point: int) -> None:
    stage = played(strikes=(Strike("A", point, Blow.DEATH),))
    assert stage.done[Blow.DEATH] == 1
    assert stage.records["A-0"].state is PlanState.DONE
    assert judge(stage.seen()).violations == ()


def test_a_plan_that_is_cancelled_goes_back() -> None:
    stage = played(Do(8.0, "A", What.CANCEL))
    assert stage.records["A-0"].state is PlanState.CANCELLED
    found = stage.model.world.partition(TopicPartition("t", 0))
    assert found is not None
    assert found[1].replicas == (1, 2)
    assert judge(stage.seen()).violations == ()


def test_of_a_run_that_is_deleted_the_sweep_and_a_person_are_left() -> None:
    stage = played(Do(10.0, "A", What.DELETE_RUN))
    (run,) = stage.rehomes["A"].airflow.runs
    assert run.states[Task.CLEAR_THROTTLE] is TaskState.NONE
    assert stage.records["A-0"].state is PlanState.CANCELLED
    assert judge(stage.seen()).violations == ()
