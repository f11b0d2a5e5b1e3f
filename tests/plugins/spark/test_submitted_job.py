"""The arguments and the environment that spark-submit gets, for each place where Spark runs."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from rehome import spark_job
from rehome.errors import InvalidConnectionError
from rehome.places.stores import LOGIN, log_in
from rehome.run.causes.errors import EndedError
from rehome.run.causes.task_end import TaskReason
from rehome.run.context import RunContext
from rehome.warehouse import Warehouse
from tests.plugins.spark.submitted import conf_of, connected, plan_operator, submitted
from tests.spark.fleets import snapshot

STANDALONE = "spark://m:7077"
DRIVER_HERE = {"spark.pyspark.driver.python": sys.executable}


@pytest.fixture(autouse=True)
def _java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_job, "require_java", lambda _: None)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


@pytest.mark.parametrize("host", ["yarn", STANDALONE])
def test_executors_on_other_machines_do_not_get_the_path_of_this_ones_python(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected(monkeypatch, host)
    arguments, environment = submitted(plan_operator(""), tmp_path, monkeypatch)
    assert "PYSPARK_PYTHON" not in environment
    assert conf_of(arguments) == DRIVER_HERE


def test_a_local_master_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connected(monkeypatch, "local[2]")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    arguments, environment = submitted(plan_operator(""), tmp_path, monkeypatch)
    assert environment["PYSPARK_PYTHON"] == str(tmp_path / "python")
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "spark.pyspark.driver.python" not in conf_of(arguments)


def test_what_the_connection_says_counts_and_the_dags_own_conf_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehome.warehouse.replicas_in", lambda _: 20_000_000)
    theirs = {
        "spark.pyspark.python": "/opt/rehome/bin/python",
        "spark.driver.memory": "24g",
        "spark.driver.memoryOverhead": "9g",
    }
    connected(monkeypatch, "yarn", **{"deploy-mode": "cluster", "conf": theirs})
    operator = plan_operator("s1", conf={"spark.driver.memoryOverhead": "10g"})
    arguments, _ = submitted(operator, tmp_path, monkeypatch)
    assert conf_of(arguments) == theirs | {"spark.driver.memoryOverhead": "10g"}


def test_a_large_snapshot_gets_a_large_driver_by_the_rows_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehome.spark.driver_memory.ENOUGH_UP_TO", 5)
    uri = Warehouse((tmp_path / "w").as_uri()).write_snapshot(snapshot("berlin"))
    connected(monkeypatch, STANDALONE)
    arguments, _ = submitted(plan_operator(uri), tmp_path, monkeypatch)
    assert conf_of(arguments) == DRIVER_HERE | {"spark.driver.memory": "1025m"}


def test_credentials_reach_the_driver_where_no_command_line_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = {"conn_type": "aws", "login": "key-1", "password": "secret-1"}
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(store))
    monkeypatch.setenv("REHOME_WAREHOUSE", "s3://bucket/rehome")
    monkeypatch.setenv("REHOME_WAREHOUSE_CONNECTION", "store")
    try:
        connected(monkeypatch, STANDALONE)
        arguments, environment = submitted(plan_operator(""), tmp_path, monkeypatch)
        assert "secret-1" in environment[LOGIN]
        assert "secret-1" not in str(arguments)
        connected(monkeypatch, "yarn")
        arguments, environment = submitted(plan_operator(""), tmp_path, monkeypatch)
        holders = [name for name, value in environment.items() if "secret-1" in value]
        assert holders == ["AIRFLOW_CONN_STORE"], "the test's own, from which it is read"
        assert "secret-1" not in str(arguments)
    finally:
        log_in(None)


def test_a_place_that_runs_no_driver_of_python_is_refused_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected(monkeypatch, STANDALONE, **{"deploy-mode": "cluster"})
    with pytest.raises(InvalidConnectionError, match="runs no driver of a Python application"):
        submitted(plan_operator(""), tmp_path, monkeypatch)
    assert not (tmp_path / "submitted.json").exists()


def test_kubernetes_needs_its_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connected(monkeypatch, "k8s://https://m:443")
    monkeypatch.setattr(spark_job, "find_spec", lambda _: None)
    with pytest.raises(InvalidConnectionError, match="needs apache-airflow-providers-cncf-kub"):
        submitted(plan_operator(""), tmp_path, monkeypatch)


def test_a_server_that_takes_no_connection_ends_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")  # no Java is needed here
    connected(monkeypatch, "sc://127.0.0.1:1")
    with pytest.raises(EndedError, match="of the connection spark_default takes no connection"):
        plan_operator("").submit(RunContext({}))


def test_a_job_on_a_server_that_fails_ends_with_its_last_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehome.spark.connect_process.ConnectProcess.reach", lambda _: None)
    connected(monkeypatch, "sc://127.0.0.1:1")
    operator = plan_operator("")
    operator.application = str(tmp_path / "plan.py")
    Path(operator.application).write_text("import sys\nprint(sys.argv)\nraise ValueError('no')")
    with pytest.raises(EndedError) as raised:
        operator.submit(RunContext({}))
    assert raised.value.end.reason is TaskReason.JOB_FAILED
    assert (raised.value.end.said, raised.value.end.place) == ("ValueError: no", "plan.py")


def test_another_attempt_never_joins_the_application_of_an_attempt_before() -> None:
    assert plan_operator("").durable is False


def test_pyspark_and_its_client_of_two_versions_start_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"pyspark": "4.2.0", "pyspark-client": "4.1.2"}
    monkeypatch.setattr(spark_job, "version", versions.__getitem__)
    connected(monkeypatch, STANDALONE)
    with pytest.raises(EndedError) as raised:
        plan_operator("").submit(RunContext({}))
    assert raised.value.end.reason is TaskReason.MIXED_PYSPARK
    versions["pyspark-client"] = "4.2.0"
    submitted(plan_operator(""), tmp_path, monkeypatch)


def test_pyspark_without_its_client_starts_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(package: str) -> str:
        if package == "pyspark-client":
            raise PackageNotFoundError(package)
        return "4.1.1"

    monkeypatch.setattr(spark_job, "version", version)
    connected(monkeypatch, STANDALONE)
    submitted(plan_operator(""), tmp_path, monkeypatch)
