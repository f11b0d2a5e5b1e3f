"""Runs of a whole Airflow: their plans, and the states of their tasks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from local.process.waiting import wait_until
from rehome.domain.plan.move import Move
from rehome.domain.request.parse_request import parse_request
from rehome.ledger.base.records import PlanRecord
from tests.dags.clusters import to
from tests.e2e.conftest import World
from tests.ledger.small_plans import make_plan, move

DAG = "reassign_partitions"
CONTROL = "control_reassignment"
SWEEP = "sweep_throttles"
TIMEOUT_S = 480.0


def trigger_planned(
    world: World, cluster_id: str, plan_id: str, *moves: Move, **params: Any
) -> str:
    """Trigger a run that carries out a plan which a dry run has recorded; returns the run's id."""
    asked = record_planned(world, cluster_id, plan_id, *moves, **params)
    return world.airflow.api.trigger(DAG, {**asked, "plan_id": plan_id})


def record_planned(
    world: World, cluster_id: str, plan_id: str, *moves: Move, **params: Any
) -> dict[str, Any]:
    """A plan as a dry run has recorded it; the parameters of a run that carries it out.

    The Spark job of a plan takes more processor time than the rest of its run. Of those that
    `test_page` plans, the runs are what `make test` has of the job in Airflow.
    """
    asked = {"action": "reassign", "kafka_config_id": "kafka_default", **params}
    plan = make_plan(plan_id, *moves, cluster_id=cluster_id)
    directory = world.warehouse.plan(plan_id)
    directory.save(plan, parse_request(asked))
    recorded = {**asked, "dry_run": True}
    world.ledger.create_plan(
        plan, recorded, directory.uri, f"dry-run-{plan_id}", "admin", "kafka_default", DAG
    )
    return asked


def trigger_window(
    world: World,
    cluster_id: str,
    plan_id: str,
    topic: str,
    closes: datetime,
    *,
    bytes_each: int,
    throttle: int,
) -> str:
    """Trigger a run that moves two partitions from brokers 1 and 2 to 3 and 2, in a window at whose
    end copies are cancelled; returns the run's id.
    """
    moves = (move(topic, number, (1, 2), (3, 2), bytes_each) for number in (0, 1))
    return trigger_planned(
        world,
        cluster_id,
        plan_id,
        *moves,
        reassignment=to(topic, {0: [3, 2], 1: [3, 2]}),
        throttle=throttle,
        window_end=closes.isoformat(),
        on_window_end="cancel",
    )


def plan_of(world: World, run_id: str) -> PlanRecord | None:
    """The run's plan; None = it has not made one yet."""
    return next((plan for plan in world.ledger.plans() if plan.run_id == run_id), None)


def asked(world: World, plan_id: str, action: str, **more: Any) -> str:
    """Ask for something of a plan as a person does; returns what the task's log answers."""
    api = world.airflow.api
    run = api.trigger(CONTROL, {"plan_id": plan_id, "action": action, **more})
    assert api.wait_for_run(CONTROL, run, TIMEOUT_S) == "success"
    return api.task_log(CONTROL, run, "request")


@contextmanager
def paused(world: World) -> Iterator[None]:
    """The DAG is paused meanwhile."""
    world.airflow.api.set_paused(DAG, paused=True)
    try:
        yield
    finally:
        world.airflow.api.set_paused(DAG, paused=False)


def swept(world: World) -> str:
    """Sweep now, though the schedule does so every ten minutes; returns the task's log."""
    api = world.airflow.api
    run = api.trigger(SWEEP)
    assert api.wait_for_run(SWEEP, run, TIMEOUT_S) == "success"
    return api.task_log(SWEEP, run, "sweep")


def kinds_about(world: World, plan_id: str) -> set[str]:
    """Kinds of the alerts about a plan that the webhook has got."""
    return {sent["kind"] for sent in world.webhook.reported if sent.get("plan_id") == plan_id}


def task_instance(world: World, run_id: str, task: str) -> dict[str, Any]:
    """A task's newest attempt, as the API returns it."""
    return world.airflow.api.task_instance(DAG, run_id, task)


def wait_for_state(
    world: World, run_id: str, task: str, states: set[str], interval_s: float = 1.0
) -> None:
    """Wait until a task is in one of these states.

    :param interval_s: each question costs Airflow's API server some hundredths of a second.
    """
    wait_until(
        lambda: task_instance(world, run_id, task)["state"] in states,
        f"{task} to be {states}",
        TIMEOUT_S,
        interval_s,
    )


def wait_for_question(world: World, run_id: str) -> PlanRecord:
    """The run's plan, once its task waits for an approval and the plan's page says so."""
    wait_for_state(world, run_id, "approve", {"awaiting_input"})
    wait_until_answers_count(world, run_id)
    asked = plan_of(world, run_id)
    assert asked is not None
    page = world.airflow.api.page(f"plans/{asked.plan_id}")
    assert "waits for approval" in page
    assert "Gates and dry run found " in page
    return asked


def wait_until_answers_count(world: World, run_id: str) -> None:
    """Wait until the scheduler has heard that the worker which put the question has ended: who
    answers before has to answer again.
    """
    wait_until(lambda: _worker_seen_to_end(world, run_id), "the worker's end to be seen")


def _worker_seen_to_end(world: World, run_id: str) -> bool:
    return any(
        "task_id='approve'" in line and f"run_id='{run_id}'" in line
        for line in world.airflow.log_file.read_text(errors="replace").splitlines()
        if "Received executor event with state success" in line
    )


def kill_task(world: World, run_id: str, task: str) -> bool:
    """SIGKILL the process that runs a task; False when it has ended already."""
    instance = task_instance(world, run_id, task)
    if instance["pid"] is None:
        return False
    try:
        os.kill(instance["pid"], signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def killed_on_the_way(world: World, run_id: str, task: str) -> bool:
    """SIGKILL a task that defers at one of the moments it runs; True once that cost it a try."""
    instance = task_instance(world, run_id, task)
    if instance["state"] == "running" and instance["try_number"] == 1:
        kill_task(world, run_id, task)
    return bool(instance["state"] == "up_for_retry" or instance["try_number"] > 1)
