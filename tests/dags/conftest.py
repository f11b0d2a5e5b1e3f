"""Runs the DAGs in this process, on real brokers: `dag.test()`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import airflow_home

# isort: split
from include.cluster.connection import Connection
from include.cluster.gateway import ClusterGateway
from include.cluster.port import ConfigChange, ConfigOperation, ConfigResource
from include.execution.throttle_items import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from include.ledger.store import Ledger
from local.kafka_cluster import LocalCluster
from local.waiting import wait_until
from tests.dags.clusters import Throttles, name_of, throttles_of
from tests.dags.runs import Run, fresh_dag, plan_without_gates, run_dag

if TYPE_CHECKING:
    from airflow.sdk import DAG

assert airflow_home.HOME.exists()


@pytest.fixture(scope="session")
def airflow_database() -> None:
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def rehome(
    airflow_database: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Callable[..., Run]:
    """Runs `reassign_partitions` on a cluster with a ledger and a warehouse of its own.

    ``rehome(cluster, action="drain", brokers=[4])``, or another ``dag``; the gates are left out
    unless ``with_spark=True``: starting Spark takes longer than everything else.
    """
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "0.3")
    monkeypatch.setattr("rehome.sensors.progress.FIRST_POLL_S", 0.0)
    spark = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))

    def run(
        cluster: LocalCluster | Mapping[str, str],
        *,
        dag: str | DAG = "reassign_partitions",
        with_spark: bool = False,
        **conf: Any,
    ) -> Run:
        settings = cluster.client_settings() if isinstance(cluster, LocalCluster) else cluster
        kafka = {"conn_type": "kafka", "extra": dict(settings)}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
        with monkeypatch.context() as patched:
            if not with_spark:
                plan_without_gates(patched)
            caplog.clear()
            with caplog.at_level("INFO"):
                chosen = fresh_dag(dag) if isinstance(dag, str) else dag
                return run_dag(chosen, conf, capfd, caplog)

    return run


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The ledger that :func:`rehome`'s runs write to."""
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def gateway(cluster: LocalCluster) -> Iterator[ClusterGateway]:
    with ClusterGateway(Connection.from_settings(cluster.client_settings())) as opened:
        yield opened


@pytest.fixture
def foreign_throttle(gateway: ClusterGateway) -> Iterator[Callable[[str], Throttles]]:
    """Sets what somebody else might have set: a topic's lists and a broker's rate.

    Returns all throttles there are then: these and no others.
    """
    rate = ConfigChange(ConfigResource.broker(2), LEADER_RATE, ConfigOperation.SET, "7654321")

    def put(topic: str) -> Throttles:
        lists = {LEADER_REPLICAS: "1:2,0:1", FOLLOWER_REPLICAS: "1:3"}
        changes = [
            ConfigChange(ConfigResource.topic(topic), key, ConfigOperation.SET, value)
            for key, value in lists.items()
        ]
        assert not any(gateway.alter_configs([rate, *changes]).values())
        foreign = {name_of(rate.resource): {LEADER_RATE: "7654321"}}
        foreign[name_of(ConfigResource.topic(topic))] = lists

        def alone() -> Throttles | None:
            found = throttles_of(gateway, [topic])
            set_somewhere = {name: values for name, values in found.items() if values}
            return found if set_somewhere == foreign else None

        found = wait_until(alone, "the foreign throttles, and no others")
        assert found is not None
        return found

    yield put
    gone = ConfigChange(rate.resource, rate.key, ConfigOperation.DELETE)
    assert not any(gateway.alter_configs([gone]).values())
