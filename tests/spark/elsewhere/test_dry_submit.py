"""YARN and Kubernetes: Spark accepts what the operator submits, and reads it as it is meant.

No application is started: there is neither of them here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from airflow.providers.apache.spark.hooks import spark_submit
from py4j.protocol import Py4JJavaError

from rehome import spark_job
from rehome.packaging import ROOT
from rehome.places.spark_packages import SparkPackages
from tests.plugins.spark.submitted import connected, plan_operator, submitted
from tests.session.needs import Need, needs
from tests.spark.elsewhere.dry_submit import DrySubmit, Prepared, dry_submit

Prepare = Callable[..., Prepared]
HADOOP = {"HADOOP_CONF_DIR": "/etc/hadoop/conf"}
KUBERNETES = "k8s://https://kubernetes.example:443"
JOB = str(ROOT / "spark_jobs" / "plan.py")
EXTRA = {
    "queue": "rehome",
    "namespace": "spark",
    "conf": {"spark.pyspark.python": "/opt/rehome/bin/python", "spark.executor.memory": "4g"},
}


@pytest.fixture(scope="module")
@needs(Need.SPARK)
def dry() -> Iterator[DrySubmit]:
    with dry_submit() as found:
        yield found


@pytest.fixture
def prepare(dry: DrySubmit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)
    monkeypatch.setattr(spark_job, "require_kubernetes", lambda _: None)
    monkeypatch.setattr("rehome.warehouse.replicas_in", lambda _: 10_000_000)

    def prepared(host: str, mode: str, **kwargs: str) -> Prepared:
        connected(monkeypatch, host, **{"deploy-mode": mode}, **EXTRA)
        arguments, _ = submitted(plan_operator("s1", **kwargs), tmp_path, monkeypatch)
        return dry.prepared(arguments, HADOOP)

    return prepared


@pytest.mark.parametrize("host", ["yarn", KUBERNETES])
def test_a_client_runs_the_job_by_this_python_and_its_executors_by_theirs(
    prepare: Prepare, host: str
) -> None:
    found = prepare(host, "client")
    assert found.main == "org.apache.spark.deploy.PythonRunner"
    assert found.arguments[0] == f"file:{JOB}"
    assert found.arguments[1].endswith("/rehome.zip")
    assert found.arguments[2:] == ["--snapshot", "s1"]
    assert found.conf["spark.pyspark.driver.python"] == sys.executable
    assert found.conf["spark.pyspark.python"] == "/opt/rehome/bin/python"
    assert found.conf["spark.driver.memory"] == "6747m"
    assert "spark.driver.memoryOverhead" not in found.conf
    assert found.conf["spark.submit.deployMode"] == "client"


def test_yarn_runs_the_driver_with_memory_for_python_too(prepare: Prepare) -> None:
    found = prepare("yarn", "cluster", files="/etc/rehome/log4j2.properties")
    assert found.main == "org.apache.spark.deploy.yarn.YarnClusterApplication"
    assert found.arguments == [
        *("--primary-py-file", f"file:{JOB}"),
        *("--class", "org.apache.spark.deploy.PythonRunner"),
        *("--arg", "--snapshot", "--arg", "s1"),
    ]
    assert found.conf["spark.master"] == "yarn"
    assert found.conf["spark.yarn.queue"] == "rehome"
    assert found.conf["spark.yarn.dist.pyFiles"].endswith("/rehome.zip")
    assert found.conf["spark.yarn.dist.files"] == "file:/etc/rehome/log4j2.properties"
    assert found.conf["spark.driver.memoryOverhead"] == "4455m"
    assert found.conf["spark.executor.memory"] == "4g"
    assert "spark.pyspark.driver.python" not in found.conf


def test_kubernetes_runs_the_driver_with_packages_of_a_store(
    prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = SparkPackages("org.apache.hadoop:hadoop-aws:3.5.0", "software.amazon.awssdk:bundle")
    monkeypatch.setattr(spark_job, "spark_packages", lambda _: packages)
    found = prepare(KUBERNETES, "cluster")
    assert found.main == "org.apache.spark.deploy.k8s.submit.KubernetesClientApplication"
    assert found.arguments[:2] == ["--primary-py-file", f"file:{JOB}"]
    assert found.conf["spark.kubernetes.namespace"] == "spark"
    assert found.conf["spark.submit.pyFiles"].endswith("/rehome.zip")
    assert found.conf["spark.jars.packages"] == packages.packages
    assert found.conf["spark.jars.excludes"] == packages.excluded
    assert found.conf["spark.driver.memoryOverhead"] == "4455m"


def test_spark_refuses_yarn_where_no_settings_of_hadoop_are(
    dry: DrySubmit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected(monkeypatch, "yarn")
    arguments, _ = submitted(plan_operator(""), tmp_path, monkeypatch)
    with pytest.raises(Py4JJavaError, match="HADOOP_CONF_DIR or YARN_CONF_DIR must be set"):
        dry.prepared(arguments, {})
