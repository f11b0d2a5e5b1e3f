"""Watching in the simulated world: its real DAGs heal what is dead, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord
from world.airflow.shape import IN_WINDOW, REASSIGN
from world.judge.judge import judge
from world.rehome.watched_cluster import by_itself, file_of
from world.running.outside import EPOCH
from world.script import Do, Script, Topic, Watch, What
from world.stage import Stage

TOPIC = Topic("t", ((1, 2), (2, 3), (3, 4)), 20_000_000)
QUIET_S = 400.0
LOST = Do(100.0, "fate", What.BROKER_LOST, (2,))


def watched(*does: Do, **rules: Any) -> tuple[list[PlanRecord], list[str]]:
    """The plans of a cluster on which broker 2 is lost, and the DAGs of all runs in their order."""
    watch = Watch("A", **rules)
    stage = Stage(Script(5, 5, (TOPIC,), (), does=(LOST, *does), quiet_s=QUIET_S, watches=(watch,)))
    try:
        stage.run()
        assert judge(stage.seen()).violations == ()
        dags = [run.graph.dag_id for run in stage.rehomes["A"].airflow.runs]
        return list(stage.records.values()), dags
    finally:
        stage.end()


def test_a_dead_broker_is_healed_by_as_many_plans_as_its_budget_takes() -> None:
    plans, dags = watched(budget_bytes=30_000_000)
    assert [(plan.state, plan.cut_by_budget) for plan in plans] == [
        (PlanState.DONE, True),
        (PlanState.DONE, False),
    ]
    assert dags == [IN_WINDOW, IN_WINDOW]


def test_a_heal_is_handed_over_to_a_window_whose_own_run_takes_it_up() -> None:
    (plan,), dags = watched(window_s=(360, 600))
    assert plan.state is PlanState.DONE
    assert plan.for_window_at is not None
    assert dags == [REASSIGN, IN_WINDOW]


def test_nothing_is_healed_while_the_windows_dag_is_paused() -> None:
    (plan,), _ = watched(Do(50.0, "A", What.PAUSE_DAG, (IN_WINDOW,)))
    assert plan.created_at > EPOCH + timedelta(seconds=QUIET_S), "when nothing is paused any more"


def test_a_proposal_waits_for_a_person() -> None:
    (plan,), dags = watched(policy="propose")
    assert plan.state is PlanState.DONE
    assert dags == [REASSIGN]


def test_what_no_person_has_triggered_is_known_by_its_run() -> None:
    proposal = SimpleNamespace(run_id="watch__1", dag_id=REASSIGN, conf={"approval": True})
    of_window = SimpleNamespace(run_id="run-1-A", dag_id=IN_WINDOW, conf={})
    asks = [Watch("A", approval=True), Watch("B")]
    found = (
        *(by_itself("A", proposal, ()), by_itself("A", of_window, ())),
        *(by_itself("A", of_window, asks), by_itself("B", of_window, asks)),
    )
    assert [each.approval for each in found if each is not None] == [True, False, True, False]
    assert by_itself("A", SimpleNamespace(run_id="run-1-A", dag_id=REASSIGN, conf={}), asks) is None


def test_its_clusters_file_has_the_windows_and_the_rules() -> None:
    (entry,) = file_of(Watch("A", window_s=(360, 600), heals_a_day=1)).clusters.values()
    assert [each.cron for each in entry.windows] == ["6 0 * * *"]
    assert entry.watch is not None
    assert entry.watch.heals_a_day == 1
