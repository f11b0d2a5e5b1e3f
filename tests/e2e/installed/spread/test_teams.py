"""`[core] multi_team`: Rehome's DAGs in a bundle of a team, with what a team has to have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.airflow.standalone import COMPONENTS, AirflowStandalone, Component
from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from tests.conftest import Topics
from tests.e2e.installed.drains import (
    DRAINED,
    airflow_with,
    connection_to,
    connects,
    drains,
    ledger_in,
    loads_all,
)
from tests.plugins.wheel import Installed
from tests.session.needs import Need, needs
from tests.session.spark_session import quick_spark
from tests.session.tried import Outcome

TEAM = "streaming"
BUNDLE = {
    "name": "dags-folder",
    "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
    "kwargs": {},
    "team_name": TEAM,
}
# A triggerer without a team takes up no trigger of a team.
TEAMS_TRIGGERER = Component((*COMPONENTS["triggerer"].words, "--team-name", TEAM))

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
@needs(Need.AIRFLOW)
def of_a_team(
    company: Installed, cluster: LocalCluster, tmp_path: Path
) -> Iterator[AirflowStandalone]:
    """Connections, the pool and the Variable belong to no team."""
    env = {
        "AIRFLOW__CORE__MULTI_TEAM": "True",
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([BUNDLE]),
        "SPARK_SUBMIT_OPTS": quick_spark(),
    }
    with airflow_with(
        company,
        tmp_path / "home",
        connection_to(cluster),
        env,
        before=["-m", "airflow", "teams", "create", TEAM],
        components={**COMPONENTS, "triggerer": TEAMS_TRIGGERER},
    ) as airflow:
        yield airflow


def test_a_drain_by_dags_of_a_team(
    of_a_team: AirflowStandalone,
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    company: Installed,
    outcome: Callable[[Outcome], None],
) -> None:
    topic = topics.create([[DRAINED, 1], [2, DRAINED]])
    topics.fill(topic, 2_000)
    loads_all(of_a_team.api)
    connects(of_a_team.api, connection_to(cluster))
    drains(of_a_team, ledger_in(of_a_team.home), topic)
    found = gateway.current_topics([topic])[topic].partitions.values()
    assert all(DRAINED not in each.replicas for each in found)
    outcome(Outcome("multi-team", company.versions("apache-airflow")))
