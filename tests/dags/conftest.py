"""Runs the DAGs in this process, on real brokers: `dag.test()`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.cluster.gateway import ClusterGateway
from include.ledger.store import Ledger
from local.kafka_cluster import LocalCluster
from tests.conftest import Topics
from tests.dags.runs import Run, fresh_dag, plan_without_gates, run_dag
from tests.dags.site import Site
from tests.spark_session import quick_spark

if TYPE_CHECKING:
    from airflow.sdk import DAG


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
    monkeypatch.setenv("SPARK_CONF_DIR", quick_spark(tmp_path / "spark-conf"))

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


@pytest.fixture
def site(
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> Site:
    """All that a run acts on; ``site.run(action="drain", brokers=[4])`` runs it."""
    return Site(cluster, topics, gateway, ledger, rehome)
