"""What `dag.test()` cannot show: a run that a person marks failed, and the end of all processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from include.cluster.gateway import ClusterGateway
from include.domain.run.states import PlanState
from local.process.waiting import wait_until
from tests.conftest import Topics
from tests.dags.clusters import Throttles, throttles_of, to
from tests.e2e.conftest import World
from tests.e2e.runs import DAG, TIMEOUT_S, plan_of, wait_for_state

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_run_marked_failed_while_it_waits_is_stopped_cleaned_up_and_told(
    world: World,
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
