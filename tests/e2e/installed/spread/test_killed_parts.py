"""A worker, a scheduler, a triggerer is killed with its disk while copies are under way."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.alerts.kinds import AlertKind
from tests.e2e.installed.spread.machines import HEARTBEAT_TIMEOUT_S, SCHEDULERS, Spread
from tests.e2e.runs import TIMEOUT_S, kinds_about, task_instance, wait_for_state
from tests.e2e.test_airflow_dies import SLOWER, Moving
from tests.e2e.test_airflow_dies import moving as moving  # a fixture
from tests.session.tried import Outcome

LONGEST_S = HEARTBEAT_TIMEOUT_S + 60
SHOWN = ("apache-airflow", "apache-airflow-providers-celery", "celery")

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture
def whole(spread: Spread) -> Iterator[Spread]:
    """All of it lives again afterwards."""
    yield spread
    spread.world.airflow.revive()


def test_a_plan_is_taken_up_when_the_worker_of_its_task_was_killed(
    whole: Spread, moving: Moving, outcome: Callable[[Outcome], None]
) -> None:
    """What the worker had in hand is noticed by its missing heartbeats alone."""
    airflow, run = whole.world.airflow, moving.run_id
    moving.get_to_the_middle()
    moving.ask_for(SLOWER)
    wait_for_state(moving.world, run, "progress", {"running"}, 0.05)
    pid = wait_until(lambda: task_instance(moving.world, run, "progress")["pid"], "its process")
    worker = airflow.component_of(pid)
    airflow.kill_component(worker)
    killed = datetime.now(UTC)
    wait_until(lambda: airflow.missing_components() == {worker}, "its end")
    whole.machines.lose_disk(worker)
    dead = task_instance(moving.world, run, "progress")
    assert dead["state"] == "running", "the task had ended before it could be killed"
    moving.check_in_the_middle()

    def taken_up() -> str:
        anew = task_instance(moving.world, run, "progress")
        begun = anew["start_date"] != dead["start_date"] and anew["try_number"] > dead["try_number"]
        return anew["start_date"] if begun else ""

    began = wait_until(taken_up, "the task to be taken up", LONGEST_S, 0.5)
    took_s = (datetime.fromisoformat(began) - killed).total_seconds()
    assert took_s > 0
    wait_for_state(moving.world, run, "progress", {"deferred"})
    moving.check_in_the_middle()
    moving.check_done()
    shown = whole.installed.versions(*SHOWN)
    shown["seconds from kill to take-up"] = f"{took_s:.0f}"
    outcome(Outcome("celery-worker-killed", shown))


def test_a_plan_is_acted_on_once_by_two_of_each_and_goes_on_when_one_of_each_is_killed(
    whole: Spread,
    cluster: LocalCluster,
    moving: Moving,
    outcome: Callable[[Outcome], None],
) -> None:
    """A broker that stands still makes the plan stall: one alert, by one of two triggerers."""
    airflow, run = whole.world.airflow, moving.run_id
    moving.get_to_the_middle()
    lost = whole.machines.holder_of_trigger()
    began = time.monotonic()
    airflow.kill_component(lost)
    moving.ask_for(SLOWER)
    whole.machines.lose_disk(lost)
    wait_for_state(moving.world, run, "progress", {"running"}, 0.05)
    noticed_s = time.monotonic() - began
    airflow.kill_component(SCHEDULERS[0])
    whole.machines.lose_disk(SCHEDULERS[0])
    wait_until(lambda: airflow.missing_components() == {lost, SCHEDULERS[0]}, "their end")
    wait_for_state(moving.world, run, "progress", {"deferred"})
    moving.check_in_the_middle()
    airflow.revive()
    cluster.pause(3)
    try:
        stalled = {str(AlertKind.STALLED)}
        wait_until(
            lambda: stalled <= kinds_about(moving.world, moving.plan_id), "the alert", TIMEOUT_S
        )
    finally:
        cluster.resume(3)
    moving.check_done()
    sent = Counter(
        each["kind"]
        for each in moving.world.webhook.reported
        if each.get("plan_id") == moving.plan_id and "kind" in each
    )
    assert set(sent.values()) == {1}, sent
    shown = whole.installed.versions(*SHOWN)
    shown["seconds until the other triggerer acts"] = f"{noticed_s:.0f}"
    outcome(Outcome("celery-two-of-each", shown))
