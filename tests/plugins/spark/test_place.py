"""What a connection says of Spark, as the provider reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import Connection

from rehome.errors import InvalidConnectionError
from rehome.spark.place import SparkPlace
from tests.plugins.spark.submitted import written_down


def connection(
    conn_type: str = "spark", *, extra: Mapping[str, Any] | None = None, **fields: Any
) -> Connection:
    text = json.dumps(extra) if extra else None
    return Connection(conn_id="spark_default", conn_type=conn_type, extra=text, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "local[*]"},
        {"host": "yarn"},
        {"host": "spark://m", "port": 7077},
        {"host": "m", "port": 7077},
        {"host": "spark://m1:7077,m2:7077"},
        {"host": "m", "port": 443, "conn_type": "yarn"},
    ],
    ids=str,
)
def test_the_master_is_the_one_that_the_provider_submits_to(
    fields: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = connection(**fields)
    monkeypatch.setattr(SparkSubmitHook, "get_connection", lambda *_: made)
    hook = SparkSubmitHook()
    arguments, _ = written_down(lambda: hook.submit("job.py"), tmp_path, monkeypatch)
    assert arguments[:2] == ["--master", SparkPlace.of(made).master]


@pytest.mark.parametrize(
    "made",
    [
        connection(host="sc://spark.example", port=15002),
        connection("spark_connect", host="spark.example", port=15002),
        connection("spark_connect", host="sc://spark.example", port=15002),
    ],
)
def test_spark_connect_is_a_scheme_or_a_type(made: Connection) -> None:
    place = SparkPlace.of(made)
    assert (place.is_server, place.master) == (True, "sc://spark.example:15002")


@pytest.mark.parametrize(
    ("host", "mode", "driver_here", "environment"),
    [
        ("spark://m:7077", "client", True, True),
        ("yarn", None, True, False),
        ("yarn", "cluster", False, False),
        ("k8s://https://m:443", "client", True, False),
        ("k8s://https://m:443", "cluster", False, False),
    ],
)
def test_a_driver_on_this_machine_runs_by_this_python_and_executors_elsewhere_by_their_own(
    host: str, mode: str | None, driver_here: bool, environment: bool
) -> None:
    place = SparkPlace.of(connection(host=host, extra={"deploy-mode": mode}))
    assert place.passes_environment is environment
    here = {"spark.pyspark.driver.python": "/p"} if driver_here else {}
    assert place.python_of_driver("/p") == here


def test_the_operators_deploy_mode_comes_before_the_connections() -> None:
    made = connection(host="yarn", extra={"deploy-mode": "client"})
    assert SparkPlace.of(made, "cluster").in_cluster


def test_values_of_the_extras_conf_are_written_as_spark_reads_them() -> None:
    conf = {"spark.executor.cores": 2, "spark.speculation": True}
    assert SparkPlace.of(connection(host="yarn", extra={"conf": conf})).conf == {
        "spark.executor.cores": "2",
        "spark.speculation": "true",
    }


@pytest.mark.parametrize("conf", [["spark.a=b"], "spark.a=b", {"spark.a": {"b": 1}}])
def test_a_conf_that_is_no_object_of_values_is_refused(conf: Any) -> None:
    with pytest.raises(InvalidConnectionError, match="'conf' in its extra is to be an object"):
        SparkPlace.of(connection(host="yarn", extra={"conf": conf}))


def test_a_standalone_cluster_runs_no_driver_of_python() -> None:
    made = connection(host="spark://m:7077", extra={"deploy-mode": "cluster"})
    with pytest.raises(InvalidConnectionError, match="spark_default cannot be used: A standalone"):
        SparkPlace.of(made)
