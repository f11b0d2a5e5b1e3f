"""The DAG of a run is paused in mid-copy, so that no task of it starts.

People are told, and the run ends with its window when its DAG goes on. That a sweep keeps that
end is tested in test_bad_luck.py: no sweep runs here.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.clock import utc_now
from rehome.domain.run.states import MoveState, PlanState
from tests.conftest import Topics
from tests.dags.clusters import throttles_of
from tests.e2e.conftest import World
from tests.e2e.runs import (
    DAG,
    TIMEOUT_S,
    asked,
    paused,
    trigger_window,
    wait_for_state,
)

SLOW = 220_000
MESSAGES, OF_BYTES = 80_000, 1_000
UNTIL_CLOSED = timedelta(seconds=150)
"""Time enough for a run to start copying on a busy machine; the copies take twice as long."""

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def test_a_paused_dag_is_named_and_the_run_ends_with_its_window_when_it_goes_on(
    world: World, cluster: LocalCluster, gateway: ClusterGateway, topics: Topics
) -> None:
    api, ledger = world.airflow.api, world.ledger
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, MESSAGES)
    before, plan_id = throttles_of(gateway, [topic]), f"paused-{topic}"
    closes = utc_now() + UNTIL_CLOSED
    size, cluster_id = MESSAGES * OF_BYTES // 2, cluster.cluster_id
    run = trigger_window(world, cluster_id, plan_id, topic, closes, bytes_each=size, throttle=SLOW)
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
