"""A drain by the wheel: in an Airflow of defaults that has Rehome from the package alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local.airflow.standalone import AirflowStandalone, Sources
from local.kafka.cluster import LocalCluster
from rehome.airflow_settings import AirflowSettings
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.run.states import PlanState
from rehome.ledger.store import Ledger
from rehome.version import REHOME_VERSION
from tests.conftest import Topics
from tests.dags.clusters import throttles_of
from tests.e2e.runs import DAG, TIMEOUT_S
from tests.plugins.wheel import installed_wheel

DRAINED = 4

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def test_a_drain_in_an_airflow_that_has_the_wheel_and_nothing_else(
    cluster: LocalCluster, gateway: ClusterGateway, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create([[DRAINED, 1], [2, DRAINED]])
    topics.fill(topic, 2_000)
    before = throttles_of(gateway, [topic])
    installed, home = installed_wheel(tmp_path), tmp_path / "home"
    connection = {"conn_type": "kafka", "extra": json.dumps(cluster.client_settings())}
    dags = home / "dags"
    assert installed.run("dags", "install", dags) == 0
    own = Sources(
        python=str(installed.python),
        python_path=(),
        dags=dags,
        plugins=home / "plugins",
        command=installed.command,
        env={},
    )
    ledger_url = f"sqlite:///{home}/ledger.db"
    env = {"REHOME_LEDGER_URL": ledger_url, "REHOME_WAREHOUSE": (home / "warehouse").as_uri()}
    settings = AirflowSettings.read().with_connections({"kafka_default": connection})
    with AirflowStandalone(home, settings=settings, env=env, dags=(DAG,), sources=own) as airflow:
        asked = {"action": "drain", "brokers": [DRAINED], "topics": [topic], "throttle": 1_000_000}
        run = airflow.api.trigger(DAG, asked)
        assert airflow.api.wait_for_run(DAG, run, TIMEOUT_S) == "success"
        with Ledger.open(ledger_url) as ledger:
            (plan,) = ledger.plans()
        assert f"Rehome {REHOME_VERSION}" in airflow.api.page(f"plans/{plan.plan_id}")
    assert plan.state is PlanState.DONE
    found = gateway.current_topics([topic])[topic].partitions.values()
    assert all(DRAINED not in each.replicas for each in found)
    assert throttles_of(gateway, [topic]) == before
