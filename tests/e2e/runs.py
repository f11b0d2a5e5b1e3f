"""Runs of a whole Airflow: which plan is theirs, and how their tasks stand."""

from __future__ import annotations

from typing import Any

from include.ledger.base.records import PlanRecord
from local.process.waiting import wait_until
from tests.e2e.conftest import World

DAG = "reassign_partitions"
TIMEOUT_S = 240.0


def plan_of(world: World, run_id: str) -> PlanRecord | None:
    """The run's plan; None = it has not made one yet."""
    return next((plan for plan in world.ledger.plans() if plan.run_id == run_id), None)


def task_instance(world: World, run_id: str, task: str) -> dict[str, Any]:
    """A task's newest attempt, as the API tells it."""
    return next(ti for ti in world.airflow.api.task_instances(DAG, run_id) if ti["task_id"] == task)


def wait_for_state(
    world: World, run_id: str, task: str, states: set[str], interval_s: float = 0.3
) -> None:
    """Wait until a task is in one of these states."""
    wait_until(
        lambda: world.airflow.api.task_states(DAG, run_id).get(task) in states,
        f"{task} to be {states}",
        TIMEOUT_S,
        interval_s,
    )
