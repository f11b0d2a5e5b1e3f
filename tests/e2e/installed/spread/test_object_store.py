"""A warehouse in an object store, set up as docs/howto/object-store.md says, with LocalExecutor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from rehome.places.spark_packages import spark_packages
from tests.conftest import Topics
from tests.dags.clusters import throttles_of
from tests.e2e.installed.drains import (
    DRAINED,
    airflow_with,
    connection_to,
    connects,
    drains,
    ledger_in,
    loads_all,
)
from tests.e2e.runs import DAG
from tests.plugins.wheel import Installed
from tests.session.s3_server import S3, SECRET
from tests.session.tried import Outcome

SHOWN = (
    *("apache-airflow", "pyspark", "s3fs", "great-expectations", "confluent-kafka"),
    *("pandas", "SQLAlchemy"),
)
CONNECTION = "rehome_s3"

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def test_a_drain_with_the_warehouse_on_s3(
    company: Installed,
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    s3: S3,
    tmp_path: Path,
    outcome: Callable[[Outcome], None],
) -> None:
    topic = topics.create([[DRAINED, 1], [2, DRAINED]])
    topics.fill(topic, 2_000)
    before = throttles_of(gateway, [topic])
    home, warehouse, connection = tmp_path / "home", s3.new_warehouse(), connection_to(cluster)
    env = {"REHOME_WAREHOUSE": warehouse, "REHOME_WAREHOUSE_CONNECTION": CONNECTION}
    wanted = spark_packages("s3", company.site_packages() / "pyspark" / "jars")
    store = {CONNECTION: json.loads(s3.airflow_connection())}
    with airflow_with(company, home, connection, env, connections=store) as airflow:
        loads_all(airflow.api)
        connects(airflow.api, connection)
        plan = drains(airflow, ledger_in(home), topic)
        assert plan.plan_dir.startswith(f"{warehouse}/plans/")
        docs = airflow.api.page(f"data-docs/{plan.dag_id}/{plan.run_id}/index.html")
        assert "snapshot.brokers" in docs
        assert f"--packages {wanted.packages} " in _log_of_plan(airflow.home)
    stored = s3.texts(warehouse)
    own = plan.plan_dir.removeprefix(warehouse)
    ends = ("gates.json", "data_docs/index.html", "report.html", "verification.json")
    assert all(f"rehome{own}/{end}" in stored for end in ends), sorted(stored)
    assert topic in stored[f"rehome{own}/report.html"]
    assert not (home / "warehouse").exists()
    assert SECRET not in airflow.log_file.read_text(errors="replace") + json.dumps(stored)
    found = gateway.current_topics([topic])[topic].partitions.values()
    assert all(DRAINED not in each.replicas for each in found)
    assert throttles_of(gateway, [topic]) == before
    fetched = (each.split(":")[1:] for each in wanted.packages.split(","))
    outcome(Outcome("s3", {**company.versions(*SHOWN), **dict(fetched)}))


def _log_of_plan(home: Path) -> str:
    """What the task *plan* has logged, in all runs."""
    found = (home / "logs" / f"dag_id={DAG}").glob("run_id=*/task_id=plan/*.log")
    return "".join(each.read_text() for each in found)
