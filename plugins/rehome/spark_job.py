"""What operators share that submit one of Rehome's Spark jobs."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import BaseHook

from rehome import installation
from rehome.packaging import ROOT, build_job_zip, local_spark
from rehome.places.spark_packages import spark_packages
from rehome.places.stores import LOGIN, current_login
from rehome.places.uris import OTHER_SCHEMES, scheme_of
from rehome.run.causes.errors import EndedError
from rehome.run.causes.operator import RecordedOperator
from rehome.run.causes.task_end import TaskEnd, TaskReason

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.run.context import RunContext


class SparkJobOperator(RecordedOperator, SparkSubmitOperator):
    """Submits a job of spark_jobs/ with Rehome's sources.

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

    def submit(self, context: RunContext) -> None:
        """Run the job to its end.

        :raises EndedError: it has failed, or there is no Java to start it with.
        """
        require_java(os.environ)
        with tempfile.TemporaryDirectory(prefix="rehome-") as scratch:
            self._ship_sources(Path(scratch))
            try:
                SparkSubmitOperator.execute(self, cast("Context", context.airflow))
            except (AirflowException, RuntimeError, OSError) as error:  # the hook raises any
                raise _failure(Path(str(self.application)).name, self.task_id, error) from error

    def _ship_sources(self, scratch: Path) -> None:
        self.py_files = str(build_job_zip(scratch / "rehome.zip"))
        env = {"PYSPARK_PYTHON": sys.executable}
        if self._master_is_local():
            # A driver on this machine serves its own executors only: nothing else may connect.
            env["SPARK_LOCAL_IP"] = "127.0.0.1"
            env["PATH"] = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
            self.conf = local_spark() | (self.conf or {})
        if others := os.environ.get(OTHER_SCHEMES):  # a job has no other settings
            env[OTHER_SCHEMES] = others
            self.conf = {f"spark.executorEnv.{OTHER_SCHEMES}": others} | (self.conf or {})
        self._open_warehouse(env)
        self.env_vars = env

    def _open_warehouse(self, env: dict[str, str]) -> None:
        """What Spark needs for a warehouse in a store: packages, and credentials for the driver."""
        found = spark_packages(scheme_of(installation.settings().warehouse))
        self.packages = _join_packages(self.packages, found.packages)
        self.exclude_packages = _join_packages(self.exclude_packages, found.excluded)
        login = current_login()
        if login is None:
            return
        if self._driver_is_ours():
            env[LOGIN] = login.to_json()
            return
        self.log.warning(
            "Where Spark's driver runs elsewhere, or under YARN or Kubernetes, the credentials of "
            "the connection that warehouse_connection names are not handed over: they would be on "
            "command lines. The machines need credentials of their own."
        )

    def _master_is_local(self) -> bool:
        """Whether the connection's master runs inside the driver's own process."""
        return self._master().startswith("local")

    def _driver_is_ours(self) -> bool:
        """Whether the driver is a process of this machine that gets its environment as it is."""
        mode = BaseHook.get_connection(self._conn_id).extra_dejson.get("deploy-mode")
        return self._master().startswith(("local", "spark://")) and mode != "cluster"

    def _master(self) -> str:
        return str(BaseHook.get_connection(self._conn_id).host or "local")


_FRAME = re.compile(r"\s*(at \S+\(|\.\.\. \d+ more|File \")")
"""A line of a stack trace that says where, not what."""
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


def _failure(job: str, task_id: str, error: Exception) -> EndedError:
    """What the hook says, less the command: its last lines are those of spark-submit."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    told = [line.strip() for line in lines if not _FRAME.match(line)] or lines
    causes = [line for line in told if _THROWN.search(line)] or told
    return EndedError(TaskEnd(TaskReason.JOB_FAILED, place=job, task=task_id, said=causes[-1]))
