"""What operators share that submit one of Rehome's Spark jobs."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException

from rehome.domain.run.causes.cause import CauseKind
from rehome.places.uris import OTHER_SCHEMES
from rehome.run.causes.errors import EndedError
from rehome.run.causes.operator import RecordedOperator
from rehome.run.causes.recorded import LOG_HAS_ALL

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class SparkJobOperator(RecordedOperator, SparkSubmitOperator):
    """Submits a job of spark_jobs/ with Rehome's sources.

    :param job: its file name.
    """

    ui_color = "#f6ead7"
    conf: dict[str, Any] | None

    def __init__(self, *, job: str, **kwargs: Any):
        from rehome.packaging import ROOT

        super().__init__(
            application=str(ROOT / "spark_jobs" / job),
            conn_id=kwargs.pop("conn_id", "spark_default"),
            **kwargs,
        )

    def submit(self, context: Context) -> None:
        """Run the job to its end.

        :raises EndedError: it has failed, or there is no Java to start it with.
        """
        require_java(os.environ)
        with tempfile.TemporaryDirectory(prefix="rehome-") as scratch:
            self._ship_sources(Path(scratch))
            try:
                SparkSubmitOperator.execute(self, context)
            except (AirflowException, RuntimeError, OSError) as error:  # the hook raises any
                raise _failed(Path(str(self.application)).name, self.task_id, error) from error

    def _ship_sources(self, scratch: Path) -> None:
        from rehome.packaging import build_job_zip, local_spark

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
        self.env_vars = env

    def _master_is_local(self) -> bool:
        """Whether the connection's master runs inside the driver's own process."""
        from airflow.sdk import BaseHook

        return str(BaseHook.get_connection(self._conn_id).host or "local").startswith("local")


def require_java(environment: Mapping[str, str]) -> None:
    """See that spark-submit finds the Java that it starts, wherever the application runs then.

    :raises EndedError: there is none on this machine.
    """
    home = environment.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else "java"
    if shutil.which(java, path=environment.get("PATH")) is not None:
        return
    where = f"JAVA_HOME is {home}, and {java} is no program" if home else "PATH has no java"
    raise EndedError(
        CauseKind.NO_JAVA,
        f"There is no Java on this worker, and spark-submit needs one: {where}",
        state_left="No plan was made; nothing was changed.",
        next_step="Install Java 17 or newer on each worker, or set JAVA_HOME; then clear the task.",
        passing=True,  # on another worker
    )


def _failed(job: str, task_id: str, error: Exception) -> EndedError:
    """What the hook says, less the command: its last line is the last one of spark-submit."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return EndedError(
        CauseKind.SPARK,
        f"The Spark application {job} has failed, and left no reason. It ends with: {lines[-1]}",
        state_left="No plan was made; nothing was changed.",
        next_step=LOG_HAS_ALL.format(task=task_id),
        passing=True,
    )
