"""A run whose warehouse is in an object store, with the real plan job and packages from Maven."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from local.kafka.cluster import LocalCluster
from rehome import installation
from rehome.domain.run.states import PlanState
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory
from tests.conftest import Topics
from tests.dags.runs import Run
from tests.session.needs import Need, needs
from tests.session.s3_server import KEY, S3, SECRET

if TYPE_CHECKING:
    from fastapi import FastAPI

pytestmark = pytest.mark.long


@pytest.fixture
@needs(Need.SPARK)
def in_s3(rehome: Callable[..., Run], s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The warehouse of runs: its URI. Credentials are in an Airflow connection alone."""
    uri = s3.new_warehouse()
    monkeypatch.setenv("REHOME_WAREHOUSE", uri)
    monkeypatch.setenv("REHOME_WAREHOUSE_CONNECTION", "rehome_s3")
    monkeypatch.setenv("AIRFLOW_CONN_REHOME_S3", s3.airflow_connection())
    yield uri
    monkeypatch.setenv("REHOME_WAREHOUSE_CONNECTION", "")
    installation.settings()


@pytest.fixture
def page() -> FastAPI:
    """The application, mounted as Airflow mounts it."""
    from tests.ui.site import page_app

    return page_app()


def test_a_whole_run_with_gates_data_docs_and_page(
    cluster: LocalCluster,
    topics: Topics,
    rehome: Callable[..., Run],
    ledger: Ledger,
    in_s3: str,
    s3: S3,
    page: FastAPI,
) -> None:
    from fastapi.testclient import TestClient

    from tests.ui.site import token_of

    topic = topics.create([[1, 4], [4, 2]])
    topics.fill(topic, 50)
    run = rehome(
        cluster, action="drain", brokers=[4], topics=[topic], throttle=50_000_000, with_spark=True
    )
    assert run.state == "success", run.log
    assert "org.apache.hadoop:hadoop-aws:" in run.log
    (record,) = ledger.plans()
    assert record.state is PlanState.DONE
    assert record.plan_dir.startswith(f"{in_s3}/plans/")
    directory = PlanDirectory(record.plan_dir)
    assert all(gate["passed"] for gate in directory.read_json("gates.json"))
    assert directory.read_json("verification.json")["ok"]
    assert topic in directory.read_text("report.html")
    browser = TestClient(
        page, cookies={"_token": token_of("viewer")}, base_url="http://testserver/rehome"
    )
    shown = browser.get(f"/plans/{record.plan_id}")
    assert shown.status_code == 200
    assert topic in shown.text
    docs = browser.get(f"/data-docs/{record.dag_id}/{run.run_id}/index.html")
    assert docs.status_code == 200
    assert "snapshot.brokers" in docs.text
    assert SECRET not in run.log + shown.text + json.dumps(s3.texts(in_s3))
    assert KEY not in run.log


def test_a_spark_that_cannot_start_leaves_its_cause(
    cluster: LocalCluster,
    topics: Topics,
    rehome: Callable[..., Run],
    in_s3: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no Maven that has the packages."""
    from rehome import spark_job
    from rehome.places.spark_packages import SparkPackages

    absent = SparkPackages("org.apache.hadoop:hadoop-aws:0.0.0-none")
    monkeypatch.setattr(spark_job, "spark_packages", lambda scheme: absent)
    topics.create([[1, 4]])
    run = rehome(cluster, action="drain", brokers=[4], throttle=50_000_000, with_spark=True)
    assert run.tasks["plan"] == "failed"
    fs = PlanDirectory(in_s3).fs
    (left,) = fs.glob(f"{PlanDirectory(in_s3).path}/plans/*/failure.json")
    failure = json.loads(fs.cat_file(left))
    assert failure["kind"] == "crashed"
    assert "hadoop-aws;0.0.0-none: not found" in failure["message"]
