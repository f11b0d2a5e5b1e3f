"""Two Airflows, each with Rehome, one ledger and one cluster: the second starts nothing beside the
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.airflow.standalone import AirflowStandalone
from local.kafka.cluster import LocalCluster
from rehome.airflow_settings import AirflowSettings
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigResource
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE
from tests.conftest import Topics
from tests.dags.clusters import name_of, throttles_become, throttles_of, to
from tests.e2e.installed.drains import connection_to, wheel_sources
from tests.e2e.installed.spread.machines import Spread
from tests.e2e.runs import CONTROL, DAG, TIMEOUT_S, record_planned, trigger_planned, wait_for_state
from tests.ledger.small_plans import move
from tests.session.needs import Need, needs
from tests.session.tried import Outcome

MESSAGES, OF_BYTES = 6_000, 10_000
CRAWL = 200_000
SHOWN = ("apache-airflow",)

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture
@needs(Need.AIRFLOW)
def other(spread: Spread, cluster: LocalCluster, tmp_path: Path) -> Iterator[AirflowStandalone]:
    """Another Airflow on the same ledger and warehouse: its own database, and LocalExecutor."""
    home = tmp_path / "other"
    connections = {"kafka_default": connection_to(cluster), **spread.shared.connections()}
    starting = AirflowStandalone(
        home,
        settings=AirflowSettings.read().with_connections(connections),
        env=spread.shared.rehome_env(),
        dags=(DAG, CONTROL),
        sources=wheel_sources(spread.installed, home),
    )
    with starting as airflow:
        yield airflow


def test_the_second_of_two_airflows_starts_no_plan_beside_the_first(
    spread: Spread,
    other: AirflowStandalone,
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    outcome: Callable[[Outcome], None],
) -> None:
    world, pair = spread.world, [topics.create([[1, 2]]) for _ in range(2)]
    topics.fill(pair[0], MESSAGES, OF_BYTES)
    plans = [f"one-ledger-{topic}" for topic in pair]
    planned = [move(topic, 0, (1, 2), (3, 2), MESSAGES * OF_BYTES) for topic in pair]
    conf = [{"reassignment": to(topic, {0: [3, 2]}), "throttle": CRAWL} for topic in pair]
    before = throttles_of(gateway, pair)
    first = trigger_planned(world, cluster.cluster_id, plans[0], planned[0], **conf[0])
    wait_for_state(world, first, "progress", {"deferred"})
    copied = gateway.list_reassignments()
    assert {each.topic for each in copied} == {pair[0]}

    also = record_planned(world, cluster.cluster_id, plans[1], planned[1], **conf[1])
    second = other.api.trigger(DAG, {**also, "plan_id": plans[1]})
    assert other.api.wait_for_run(DAG, second, TIMEOUT_S) == "failed"
    assert {each.topic for each in gateway.list_reassignments()} == {pair[0]}
    rates = throttles_of(gateway, pair)[name_of(ConfigResource.cluster_default())]
    assert rates.keys() == {LEADER_RATE, FOLLOWER_RATE}, "the first one's throttle stays"
    assert world.ledger.plan(plans[0]).state is PlanState.RUNNING
    assert not world.ledger.plan(plans[1]).state.active
    said = _said_by_failed_tasks(other, second)
    assert plans[0] in said, said
    assert f"{DAG}/{first}" in said, said
    assert "sends no heartbeat" not in said, "the first one's run lives, in the other Airflow"

    page = other.api.page(f"plans/{plans[0]}")
    assert pair[0] in page
    assert "running" in page.lower()
    assert "sends no heartbeat" not in page
    control = other.api.trigger(CONTROL, {"plan_id": plans[0], "action": "cancel"})
    assert other.api.wait_for_run(CONTROL, control, TIMEOUT_S) == "success"
    assert world.airflow.api.wait_for_run(DAG, first, TIMEOUT_S) == "failed"
    assert world.ledger.plan(plans[0]).state is PlanState.CANCELLED
    throttles_become(gateway, pair, before)
    assert not world.ledger.throttles(open_only=True)
    outcome(Outcome("one-ledger", spread.installed.versions(*SHOWN)))


def _said_by_failed_tasks(airflow: AirflowStandalone, run: str) -> str:
    failed = (each for each in airflow.api.task_instances(DAG, run) if each["state"] == "failed")
    return "\n".join(
        airflow.api.task_log(DAG, run, each["task_id"], each["try_number"]) for each in failed
    )
