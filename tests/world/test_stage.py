"""Real code in a world: a plan that nothing disturbs, and one whose processes die."""

from __future__ import annotations

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord
from world.airflow.states import TaskState
from world.judge.judge import judge
from world.judge.violations import Kind
from world.running.trace import Trace
from world.script import Blow, Do, Plan, Script, Strike, Topic, What
from world.stage import Stage

TOPIC = Topic("t", ((1, 2), (2, 3)), 40_000_000)
PLAN = Plan("A", (("t", 0, (3, 2)), ("t", 1, (2, 4))))
START = Do(1.0, "A", What.START, (0,))


def only(stage: Stage) -> PlanRecord:
    """The record of the only plan."""
    (record,) = stage.records.values()
    return record


def played(*does: Do, strikes: tuple[Strike, ...] = ()) -> Stage:
    script = Script(1, 4, (TOPIC,), (PLAN,), does=(START, *does), strikes=strikes, quiet_s=200.0)
    stage = Stage(script, Trace())
    stage.run()
    return stage


def test_a_plan_that_nothing_disturbs_is_done_and_leaves_nothing() -> None:
    stage = played()
    assert only(stage).state is PlanState.DONE
    (run,) = stage.rehomes["A"].airflow.runs
    after = {name: state for name, state in run.states().items() if "follow_up" in name}
    assert set(after.values()) == {TaskState.SKIPPED}
    assert {s for name, s in run.states().items() if name not in after} == {TaskState.SUCCESS}
    found = stage.model.world.partition(TopicPartition("t", 0))
    assert found is not None
    assert found[1].replicas == (3, 2)
    assert {said.where for said in stage.statements} > {"verify", "clear_throttle"}
    assert judge(stage.seen()).violations == ()


@pytest.mark.slow
@pytest.mark.parametrize("point", [20, 40, 61, 80, 100, 130, 180])
def test_a_process_that_is_killed_is_followed_by_another_that_ends_the_plan(point: int) -> None:
    stage = played(strikes=(Strike("A", point, Blow.DEATH),))
    assert stage.done[Blow.DEATH] == 1
    assert only(stage).state is PlanState.DONE
    assert judge(stage.seen()).violations == ()


def test_a_process_is_killed_after_an_answer_wherever_that_comes() -> None:
    asked = Strike("A", 1, Blow.DEATH, after="AlterPartitionReassignments")
    stage = played(strikes=(asked,))
    (run,) = stage.rehomes["A"].airflow.runs
    again = [name for name, task in run.tasks.items() if task.try_number > 1]
    assert (stage.done[Blow.DEATH], again) == (1, ["execute"])
    assert only(stage).state is PlanState.DONE


def test_a_plan_that_is_cancelled_goes_back() -> None:
    stage = played(Do(8.0, "A", What.CANCEL))
    assert only(stage).state is PlanState.CANCELLED
    found = stage.model.world.partition(TopicPartition("t", 0))
    assert found is not None
    assert found[1].replicas == (1, 2)
    assert judge(stage.seen()).violations == ()


def test_of_a_run_that_is_deleted_the_sweep_and_a_person_are_left() -> None:
    stage = played(Do(10.0, "A", What.DELETE_RUN))
    (run,) = stage.rehomes["A"].airflow.runs
    assert run.states()["clear_throttle"] is TaskState.NONE
    assert only(stage).state is PlanState.CANCELLED
    assert judge(stage.seen()).violations == ()


@pytest.mark.slow
def test_a_drain_is_planned_tried_out_and_looked_at_when_it_is_done() -> None:
    drain = Plan("A", (), drains=(1,), tried_out=True, cordons=True)
    script = Script(1, 4, (TOPIC,), (drain,), does=(START,), quiet_s=200.0)
    stage = Stage(script, Trace())
    stage.run()
    assert only(stage).state is PlanState.DONE
    assert "drained" in {said.where for said in stage.statements}
    assert all(1 not in part.replicas for part in stage.model.world.image.partitions.values())
    assert judge(stage.seen()).violations == ()


def test_a_plan_that_the_dry_run_refuses_does_not_run() -> None:
    plan = Plan("A", PLAN.moves, tried_out=True)
    away = Do(7.0, "fate", What.DELETE_TOPIC, ("t",))
    script = Script(1, 4, (TOPIC,), (plan,), does=(START, away))
    stage = Stage(script, Trace())
    stage.run()
    assert only(stage).cause == "refused by the dry run"
    (run,) = stage.rehomes["A"].airflow.runs
    assert run.states()["throttle"] is TaskState.UPSTREAM_FAILED


@pytest.mark.slow
def test_a_plan_that_is_done_is_taken_back_by_another() -> None:
    stage = played(Do(150.0, "A", What.ROLL_BACK))
    states = sorted(each.state for each in stage.records.values())
    assert states == [PlanState.DONE, PlanState.ROLLED_BACK]
    found = stage.model.world.partition(TopicPartition("t", 0))
    assert found is not None
    assert found[1].replicas == (1, 2)
    assert judge(stage.seen()).violations == ()


def test_replicas_go_to_the_other_log_dirs_of_their_brokers() -> None:
    script = Script(1, 4, (TOPIC,), (Plan("A", PLAN.moves, log_dirs=True),), does=(START,))
    stage = Stage(script, Trace())
    before = {}
    stage.scheduler.spawn("look", lambda: before.update(stage.model.world.image.partitions), 0.9)
    stage.run()
    assert only(stage).state is PlanState.DONE
    for key, state in stage.model.world.image.partitions.items():
        assert not set(state.dirs) & set(before[key].dirs)
    assert judge(stage.seen()).violations == ()


def test_an_error_of_what_befalls_the_cluster_fails_the_run() -> None:
    stage = played(Do(5.0, "fate", What.BROKER_KILLED, (99,)))
    (found,) = judge(stage.seen()).violations
    assert (found.kind, found.subject) == (Kind.CRASH, "KeyError")
    assert "fate:broker_killed" in found.text
