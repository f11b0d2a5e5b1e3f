"""What operators share that submit one of Rehome's Spark jobs."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import BaseHook

from rehome import installation
from rehome.errors import InvalidConnectionError
from rehome.packaging import ROOT, build_job_zip, local_spark
from rehome.places.spark_packages import spark_packages
from rehome.places.stores import LOGIN, current_login
from rehome.places.uris import OTHER_SCHEMES, scheme_of
from rehome.run.causes.errors import EndedError
from rehome.run.causes.operator import RecordedOperator
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.spark.connect_process import ConnectProcess
from rehome.spark.driver_memory import memory_conf
from rehome.spark.place import SparkPlace

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.run.context import RunContext


class SparkJobOperator(RecordedOperator, SparkSubmitOperator):
    """Has Spark run a job of spark_jobs/ with Rehome's sources: by spark-submit, or by a Spark
    Connect server where the connection names one.

    :param job: its file name.
    """

    ui_color = "#f6ead7"
    conf: dict[str, Any] | None
    packages: str | None
    exclude_packages: str | None

    def __init__(self, *, job: str, **kwargs: Any):
        super().__init__(
            application=str(ROOT / "spark_jobs" / job),
            conn_id=kwargs.pop("conn_id", "spark_default"),
            **kwargs,
        )
        # Another attempt discards what this one writes: it never joins an application of before.
        self.durable = False
        self.snapshots: Sequence[str] = ()
        """URIs of the snapshots that the job plans on."""
        self._running: ConnectProcess | None = None

    def submit(self, context: RunContext) -> None:
        """Run the job to its end.

        :raises EndedError: it has failed, or what it needs to begin is missing.
        """
        require_one_pyspark()
        place = self._place()
        if place.is_server:
            self._run_on_server(place)
            return
        require_java(os.environ)
        if place.is_kubernetes:
            require_kubernetes(self._conn_id)
        with tempfile.TemporaryDirectory(prefix="rehome-") as scratch:
            self._ship_sources(Path(scratch), place)
            try:
                SparkSubmitOperator.execute(self, cast("Context", context.airflow))
            except (AirflowException, RuntimeError, OSError) as error:  # the hook raises any
                raise self._failure(str(error) or type(error).__name__) from error

    def on_kill(self) -> None:
        """End what was started, wherever it is."""
        if self._running is not None:
            self._running.kill()
        else:
            super().on_kill()

    def _run_on_server(self, place: SparkPlace) -> None:
        job = ConnectProcess(SparkConnectHook(self._conn_id).get_connection_url())
        try:
            job.reach()
        except OSError as error:
            end = TaskEnd(
                TaskReason.NO_SPARK_SERVER,
                place=job.address,
                said=str(error),
                names=(self._conn_id,),
            )
            raise EndedError(end) from error
        env: dict[str, str] = {}
        self._hand_over_schemes(env)
        self._hand_over_login(env, place)
        arguments = [str(each) for each in self.application_args or ()]
        self._running = job
        code, said = job.run(str(self.application), arguments, env, self._log_line)
        if code:
            raise self._failure(said or f"It ended with {code}.")

    def _log_line(self, line: str) -> None:
        self.log.info("%s", line)

    def _ship_sources(self, scratch: Path, place: SparkPlace) -> None:
        self.py_files = str(build_job_zip(scratch / "rehome.zip"))
        env: dict[str, str] = {}
        conf = place.python_of_driver(sys.executable)
        if place.is_local:
            # A driver on this machine serves its own executors only: nothing else may connect.
            env["SPARK_LOCAL_IP"] = "127.0.0.1"
            env["PYSPARK_PYTHON"] = sys.executable
            env["PATH"] = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
            conf |= local_spark()
        conf |= memory_conf(_replicas_of(self.snapshots), in_cluster=place.in_cluster)
        conf |= self._hand_over_schemes(env)
        self.conf = conf | dict(place.conf) | (self.conf or {})
        packages = spark_packages(scheme_of(installation.settings().warehouse))
        self.packages = _join_packages(self.packages, packages.packages)
        self.exclude_packages = _join_packages(self.exclude_packages, packages.excluded)
        self._hand_over_login(env, place)
        self.env_vars = env

    def _hand_over_schemes(self, env: dict[str, str]) -> dict[str, str]:
        """Schemes of URIs that this installation allows: a job has no other settings."""
        others = os.environ.get(OTHER_SCHEMES)
        if not others:
            return {}
        env[OTHER_SCHEMES] = others
        return {f"spark.executorEnv.{OTHER_SCHEMES}": others}

    def _hand_over_login(self, env: dict[str, str], place: SparkPlace) -> None:
        """Credentials of a warehouse in a store, for the job's own process."""
        login = current_login()
        if login is None:
            return
        if place.passes_environment:
            env[LOGIN] = login.to_json()
        if place.is_server or not place.passes_environment:
            self.log.warning(
                "Where Spark's driver runs elsewhere, or under YARN or Kubernetes, it does not get "
                "the credentials of the connection that warehouse_connection names: they would be "
                "on command lines, or in clear text. Its machines need credentials of their own."
            )

    def _place(self) -> SparkPlace:
        return SparkPlace.of(BaseHook.get_connection(self._conn_id), self._deploy_mode)

    def _failure(self, said: str) -> EndedError:
        return _failure(Path(str(self.application)).name, self.task_id, said)


def _replicas_of(snapshots: Sequence[str]) -> list[int]:
    """How many each has; by the metadata of its file."""
    from rehome.warehouse import replicas_in

    return [replicas_in(uri) for uri in snapshots]


_FRAME = re.compile(r"\s*(at \S+\(|\.\.\. \d+ more|File \")")
"""A line of a stack trace that says where, not what."""
_KUBERNETES_PROVIDER = "airflow.providers.cncf"
_THROWN = re.compile(r"(^Caused by: |^Exception in thread |^[\w.]+(Error|Exception)\b)")


def _join_packages(*lists: str | None) -> str | None:
    return ",".join(filter(None, lists)) or None


def require_java(environment: Mapping[str, str]) -> None:
    """See that spark-submit finds the Java that it starts, wherever the application runs then.

    :raises EndedError: there is none on this machine.
    """
    home = environment.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else "java"
    if shutil.which(java, path=environment.get("PATH")) is not None:
        return
    raise EndedError(TaskEnd(TaskReason.NO_JAVA, place=home or "", said=str(java)))


def require_one_pyspark() -> None:
    """See that pyspark and pyspark-client, which share files, are of one version.

    :raises EndedError: they are of two.
    """
    try:
        versions = version("pyspark"), version("pyspark-client")
    except PackageNotFoundError:  # one of them alone shares nothing
        return
    if versions[0] != versions[1]:
        raise EndedError(TaskEnd(TaskReason.MIXED_PYSPARK, names=versions))


def require_kubernetes(conn_id: str) -> None:
    """See that the hook finds the provider by which it speaks to Kubernetes.

    :raises InvalidConnectionError: it does not.
    """
    if find_spec(_KUBERNETES_PROVIDER) is None:
        provider = "apache-airflow-providers-cncf-kubernetes"
        raise InvalidConnectionError(conn_id, [f"A master of Kubernetes needs {provider}."])


def _failure(job: str, task_id: str, output: str) -> EndedError:
    """What the hook says, less the command: its last lines are those of spark-submit."""
    lines = output.strip().splitlines()
    messages = [line.strip() for line in lines if not _FRAME.match(line)] or lines
    causes = [line for line in messages if _THROWN.search(line)] or messages
    return EndedError(TaskEnd(TaskReason.JOB_FAILED, place=job, task=task_id, said=causes[-1]))
