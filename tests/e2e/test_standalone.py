"""What `dag.test()` cannot show: a scheduler, a triggerer, kills, and a person at the UI."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from include.cluster.gateway import ClusterGateway
from include.domain.run.states import MoveState, PlanState
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from tests.conftest import Topics
from tests.dags.clusters import Throttles, throttles_of, to
from tests.e2e.conftest import World
from tests.e2e.runs import DAG, TIMEOUT_S, plan_of, task_instance, wait_for_state

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def worker_seen_to_end(world: World, run_id: str, task: str) -> bool:
    """Who answers faster than the scheduler hears of the worker's end has to answer again."""
    return any(
        f"task_id='{task}'" in line and f"run_id='{run_id}'" in line
        for line in world.airflow.log_file.read_text(errors="replace").splitlines()
        if "Received executor event with state success" in line
    )


def test_an_approved_plan_is_carried_out_and_told(
    world: World, cluster: LocalCluster, topics: Topics, gateway: ClusterGateway
) -> None:
    topic = topics.create([[1, 2], [2, 3]])
    topics.fill(topic, 300)
    before = throttles_of(gateway, [topic])
    conf = {"action": "reassign", "reassignment": to(topic, {0: [3, 2]}), "approval": True}
    run = world.airflow.api.trigger(DAG, conf | {"throttle": 50_000_000})
    wait_for_state(world, run, "approve", {"awaiting_input"})
    wait_until(lambda: worker_seen_to_end(world, run, "approve"), "the worker's end to be seen")
    asked = plan_of(world, run)
    assert asked is not None
    assert "waits for approval" in world.airflow.api.page(f"plans/{asked.plan_id}")
    assert gateway.describe_topics([topic])[topic].partitions[0].replicas == (1, 2)
    world.airflow.api.answer(DAG, run, "approve", "Approve")
    state = world.airflow.api.wait_for_run(DAG, run, TIMEOUT_S)
    plan = plan_of(world, run)
    assert plan is not None
    assert (state, plan.state) == ("success", PlanState.DONE), plan.cause
    assert plan.approved_by == "admin"
    assert "waits for approval" not in world.airflow.api.page(f"plans/{plan.plan_id}")
    assert gateway.describe_topics([topic])[topic].partitions[0].replicas == (3, 2)
    wait_until(lambda: throttles_of(gateway, [topic]) == before, "the throttles as they were")
    (told,) = wait_until(lambda: world.webhook.about(run), "the notifier", TIMEOUT_S)
    assert told["ended"] == "succeeded"
    assert "Gate on the snapshot: passed" in world.airflow.api.task_log(DAG, run, "plan")


def test_a_run_marked_failed_while_it_waits_is_stopped_cleaned_up_and_told(
    world: World,
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    foreign_throttle: Callable[[str], Throttles],
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 3_000, size_bytes=10_000)
    before = foreign_throttle(topic)
    conf = {"action": "reassign", "reassignment": to(topic, {0: [3, 2]}), "throttle": 300_000}
    run = world.airflow.api.trigger(DAG, conf)
    wait_for_state(world, run, "progress", {"deferred"})
    assert gateway.list_reassignments()
    wait_until(lambda: throttles_of(gateway, [topic]) != before, "a throttle of ours")
    world.airflow.api.set_run_state(DAG, run, "failed")
    wait_for_state(world, run, "verdict", {"failed", "success", "skipped"})
    assert world.airflow.api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
    wait_until(lambda: throttles_of(gateway, [topic]) == before, "the throttles as they were")
    assert not gateway.list_reassignments()
    assert gateway.describe_topics([topic])[topic].partitions[0].replicas == (1, 2)
    plan = plan_of(world, run)
    assert plan is not None
    assert plan.state is PlanState.FAILED
    (told,) = wait_until(lambda: world.webhook.about(run), "the notifier", TIMEOUT_S)
    assert (told["ended"], told["plan_id"], told["state"]) == ("failed", plan.plan_id, "failed")
    assert told["throttles_owed"] == []


def test_killed_tasks_go_on_where_they_were(
    world: World,
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    foreign_throttle: Callable[[str], Throttles],
) -> None:
    topic = topics.create([[1, 2]] * 3)
    topics.fill(topic, 500, size_bytes=10_000)
    before = foreign_throttle(topic)
    wanted = to(topic, {number: [3, 2] for number in range(3)})
    conf = {"action": "reassign", "reassignment": wanted, "throttle": 1_000_000}
    run = world.airflow.api.trigger(DAG, conf | {"max_moves_per_broker": 1})
    wait_for_state(world, run, "execute", {"running"})
    killed = kill_task(world, run, "execute")
    wait_until(lambda: killed_on_the_way(world, run, "progress"), "progress to be killed", 240, 0.2)
    state = world.airflow.api.wait_for_run(DAG, run, TIMEOUT_S)
    plan = plan_of(world, run)
    assert plan is not None
    assert killed, "the task had ended before it could be killed"
    assert (state, plan.state) == ("success", PlanState.DONE), plan.cause
    moves = world.ledger.moves(plan.plan_id).values()
    assert {move.state for move in moves} == {MoveState.DONE}
    wait_until(lambda: throttles_of(gateway, [topic]) == before, "the throttles as they were")


def killed_on_the_way(world: World, run_id: str, task: str) -> bool:
    """SIGKILL a task that defers at one of the moments it runs; True once that cost it a try."""
    instance = task_instance(world, run_id, task)
    if instance["state"] == "running" and instance["try_number"] == 1:
        kill_task(world, run_id, task)
    return instance["state"] == "up_for_retry" or instance["try_number"] > 1


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


# tests/local/test_guard.py shows in `make test` what ends it.
@pytest.mark.long
def test_nothing_of_airflow_outlives_a_caller_that_was_killed(tmp_path: Path) -> None:
    code = f"""
        import signal
        from pathlib import Path
        from local.airflow.standalone import AirflowStandalone
        airflow = AirflowStandalone(Path({str(tmp_path)!r}))
        airflow.start()
        signal.pause()
    """
    caller = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    try:
        wait_until(lambda: components_of(tmp_path) == COMPONENTS, "every component", TIMEOUT_S)
    finally:
        caller.kill()
        caller.wait(10)
    wait_until(lambda: not processes_of(tmp_path), "every process of it to end", 240)


COMPONENTS = {"scheduler", "dag-processor", "triggerer"}  # the API server renames itself


def components_of(home: Path) -> set[str]:
    """Airflow's components that run with this AIRFLOW_HOME."""
    words: set[str] = set()
    for process in processes_of(home):
        with suppress(psutil.NoSuchProcess):
            words.update(process.cmdline())
    return COMPONENTS & words


def processes_of(home: Path) -> list[psutil.Process]:
    """Processes whose environment names this AIRFLOW_HOME."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("AIRFLOW_HOME") == str(home):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
