"""Runs that no pool would let start are not triggered."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.trigger_check import DAGS_IN_POOL, POOL, refusal_without_pool

DAGS = Path(__file__).resolve().parents[2] / "dags"


@pytest.mark.parametrize(
    "dag_id", ["reassign_partitions", "rebalance_in_window__orders", "plan_fleet"]
)
def test_what_waits_in_a_pool_that_is_missing_is_refused_with_the_command(
    without_pool: None, dag_id: str
) -> None:
    refusal = refusal_without_pool(dag_id)
    assert POOL in refusal
    assert "`rehome settings import`" in refusal


@pytest.mark.parametrize(
    "dag_id", ["control_reassignment", "reassign_partitions__nightly", "theirs"]
)
def test_what_may_run_without_the_pool_is_not_refused(without_pool: None, dag_id: str) -> None:
    assert refusal_without_pool(dag_id) == ""


@pytest.mark.usefixtures("airflow_database")
def test_nothing_is_refused_where_the_pool_is() -> None:
    assert refusal_without_pool("reassign_partitions") == ""


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_database")
def test_the_dags_that_are_refused_are_those_whose_first_task_waits_in_the_pool() -> None:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(DAGS))
    in_pool = {
        dag_id for dag_id, dag in bag.dags.items() if {task.pool for task in dag.roots} == {POOL}
    }
    assert in_pool == DAGS_IN_POOL
