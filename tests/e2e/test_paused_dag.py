"""The DAG of a run is paused in mid-copy, so that no task of it starts.

People are told, the window's end is kept, and the run ends when its DAG goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from include.cluster.gateway import ClusterGateway
from include.domain.clock import utc_now
from include.domain.run.states import MoveState, PlanState
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from tests.conftest import Topics, impatient_gateway
from tests.dags.clusters import no_throttles, throttles_become, throttles_of, to
from tests.e2e.conftest import World
from tests.e2e.runs import (
    DAG,
    TIMEOUT_S,
    asked,
    kinds_about,
    swept,
    trigger_planned,
    wait_for_state,
)
from tests.ledger.small_plans import move

SLOW = 220_000
MESSAGES, OF_BYTES = 80_000, 1_000
UNTIL_CLOSED = timedelta(seconds=150)
"""Time enough for a run to start copying on a busy machine; the copies take twice as long."""

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@contextmanager
def paused(world: World) -> Iterator[None]:
    """The DAG is paused meanwhile."""
    world.airflow.api.set_paused(DAG, paused=True)
    try:
        yield
    finally:
        world.airflow.api.set_paused(DAG, paused=False)


def test_a_paused_dag_is_named_and_the_run_ends_with_its_window_when_it_goes_on(
    world: World, cluster: LocalCluster, gateway: ClusterGateway, topics: Topics
) -> None:
    api, ledger = world.airflow.api, world.ledger
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, MESSAGES)
    before, plan_id = throttles_of(gateway, [topic]), f"paused-{topic}"
    closes = utc_now() + UNTIL_CLOSED
    run = trigger_planned(
        world,
        cluster.cluster_id,
        plan_id,
        *(move(topic, n, (1, 2), (3, 2), MESSAGES * OF_BYTES // 2) for n in (0, 1)),
        reassignment=to(topic, {0: [3, 2], 1: [3, 2]}),
        throttle=SLOW,
        window_end=closes.isoformat(),
        on_window_end="cancel",
    )
    wait_for_state(world, run, "progress", {"deferred"})
    with paused(world):
        assert utc_now() < closes, "the machine is too slow for this test"
        assert gateway.list_reassignments()
        page = api.page(f"plans/{plan_id}")
        assert f"its DAG {DAG} is paused in Airflow" in page
        answer = asked(world, plan_id, "resume")
        assert f"But the DAG {DAG} is paused in Airflow: no task of run {run} starts" in answer

    assert api.wait_for_run(DAG, run, TIMEOUT_S) == "success"
    assert ledger.plan(plan_id).state is PlanState.PAUSED
    assert ledger.plan(plan_id).cause == "the window has ended"
    assert ledger.holder(cluster.cluster_id) is None
    assert not gateway.list_reassignments()
    assert not ledger.throttles(plan_id, open_only=True)
    assert throttles_of(gateway, [topic]) == before
    assert set(ledger.view(plan_id).moves.values()) == {MoveState.PENDING}
    asked(world, plan_id, "cancel")
    assert ledger.plan(plan_id).state is PlanState.CANCELLED


def test_the_sweep_keeps_the_windows_end_where_the_trigger_has_fired_for_what_no_task_does(
    impatient_world: World, mortal: LocalCluster
) -> None:
    """It fires for a throttle that a worker is to set. From then on nothing of the run acts."""
    world, api, ledger = impatient_world, impatient_world.airflow.api, impatient_world.ledger
    topics = Topics(mortal)
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, MESSAGES)
    plan_id = f"swept-{topic}"
    with impatient_gateway(mortal) as gateway:
        before, closes = no_throttles(gateway, [topic]), utc_now() + UNTIL_CLOSED
        run = trigger_planned(
            world,
            mortal.cluster_id,
            plan_id,
            *(move(topic, n, (1, 2), (3, 2), MESSAGES * OF_BYTES // 2) for n in (0, 1)),
            reassignment=to(topic, {0: [3, 2], 1: [3, 2]}),
            throttle=SLOW,
            window_end=closes.isoformat(),
            on_window_end="cancel",
        )
        wait_for_state(world, run, "progress", {"deferred"})
        with paused(world):
            answer = asked(world, plan_id, "change_throttle", throttle=SLOW - 10_000)
            assert f"once the DAG {DAG} is unpaused" in answer
            wait_for_state(world, run, "progress", {"scheduled"})
            wait_until(lambda: ledger.holder(mortal.cluster_id) is None, "its lease to end", 60)
            answer = asked(world, plan_id, "resume")
            assert f"But the DAG {DAG} is paused in Airflow: no task of run {run} starts" in answer
            assert gateway.list_reassignments()
            assert utc_now() < closes, "the machine is too slow for this test"
            log = swept(world)
            assert utc_now() > closes
            assert f"its DAG {DAG} is paused in Airflow: no task of run {run} starts" in log
            assert "2 moves taken back; the window has ended" in log
            assert "dag_paused" in kinds_about(world, plan_id)
            record = ledger.plan(plan_id)
            assert (record.state, record.cause) == (PlanState.PAUSED, "the window has ended")
            assert ledger.holder(mortal.cluster_id) is None
            assert not gateway.list_reassignments()
            throttles_become(gateway, [topic], before)
    assert api.wait_for_run(DAG, run, TIMEOUT_S) == "success"
    asked(world, plan_id, "cancel")
    assert ledger.plan(plan_id).state is PlanState.CANCELLED
