"""What watching starts by itself in a whole Airflow, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind
from tests.conftest import Topics, impatient_gateway
from tests.e2e.conftest import WINDOW_DAG, World, started_airflow
from tests.e2e.healing.watched import COLLECT, RUNS_S, WATCH, collected, kill
from tests.session.needs import Need, needs

RACKS = ("a", "a", "b", "b", "c", "c")
RULES = {"grace_s": 0, "snapshots_to_close": 1, "policies": {"dead_broker": "heal"}}

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture
def racks(private_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Three racks of two brokers."""
    return private_cluster(brokers=len(RACKS), racks=RACKS)


@pytest.fixture
@needs(Need.AIRFLOW)
def healing(racks: LocalCluster, tmp_path: Path) -> Iterator[World]:
    """An Airflow that watches it, and heals dead brokers at any time."""
    home, file = tmp_path / "airflow", tmp_path / "clusters.yaml"
    home.mkdir()
    file.write_text(json.dumps({"clusters": {"main": {"connection": "kafka_default"}}}))
    ledger_url = f"sqlite:///{home}/ledger.db"
    env = {
        "REHOME_LEDGER_URL": ledger_url,
        "REHOME_CLUSTERS_FILE": str(file),
        "REHOME_WATCH_RULES": json.dumps(RULES),
    }
    dags = (COLLECT, WATCH, WINDOW_DAG, "reassign_partitions")
    with started_airflow(home, racks, ledger_url, dags, env) as world:
        for dag in (WATCH, WINDOW_DAG):
            world.airflow.api.set_paused(dag, paused=False)
        yield world


def test_a_rack_and_an_edited_connection_heal_nothing_and_a_dead_broker_is_healed(
    healing: World, racks: LocalCluster, private_cluster: Callable[..., LocalCluster]
) -> None:
    ledger, api = healing.ledger, healing.airflow.api
    api.set_paused(COLLECT, paused=False)
    topics = Topics(racks)
    topic = topics.create([[1, 3, 5], [2, 4, 6], [3, 5, 2]])
    topics.fill(topic, 50)
    collected(healing, 1)

    kill(racks, 5, 6)
    collected(healing, 3)
    found = {each.key: each for each in ledger.open_findings(racks.cluster_id)}
    for key in ("broker 5", "broker 6"):
        assert found[FindingKind.DEAD_BROKER, key].facts["domains_away"] == ["rack /c"]
    assert api.runs(WINDOW_DAG) == []
    told = [each for each in healing.webhook.reported if each.get("finding") == "dead_broker"]
    assert len(told) == 2
    assert all("Bring the brokers back" in each["next_step"] for each in told)
    for broker in (5, 6):
        racks.restart(broker)
    collected(healing, 2)

    other = private_cluster(brokers=3)
    lost = Topics(other).create([[1, 3], [2, 3]])
    connect(healing, other)
    collected(healing, 1)
    kill(other, 3)
    collected(healing, 3)
    assert api.runs(WINDOW_DAG) == []
    assert ledger.plans() == []
    assert [each.subject for each in ledger.open_alerts(AlertKind.WRONG_CLUSTER)]
    with impatient_gateway(other) as gateway:
        held = gateway.describe_topics([lost])[lost].partitions
    assert [held[at].replicas for at in sorted(held)] == [(1, 3), (2, 3)]

    connect(healing, racks)
    collected(healing, 1)
    assert not ledger.open_alerts(AlertKind.WRONG_CLUSTER)
    kill(racks, 2)
    collected(healing, 2)
    (run,) = api.runs(WINDOW_DAG)
    assert api.wait_for_run(WINDOW_DAG, run["dag_run_id"], RUNS_S) == "success"
    (plan,) = ledger.plans()
    assert (plan.state, plan.request["brokers"]) == (PlanState.DONE, [2])
    collected(healing, 1)
    assert (FindingKind.DEAD_BROKER, "broker 2") not in {
        each.key for each in ledger.open_findings(racks.cluster_id)
    }


def connect(world: World, cluster: LocalCluster) -> None:
    extra: dict[str, Any] = dict(cluster.client_settings())
    world.airflow.api.edit_connection("kafka_default", "kafka", extra)
