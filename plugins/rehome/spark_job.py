"""What operators share that submit one of Rehome's Spark jobs."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from include.places.uris import OTHER_SCHEMES

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class SparkJobOperator(SparkSubmitOperator):
    """Submits a job of spark_jobs/ with Rehome's sources.

    :param job: its file name.
    """

    ui_color = "#f6ead7"
    conf: dict[str, Any] | None

    def __init__(self, *, job: str, **kwargs: Any):
        from include.packaging import ROOT

        super().__init__(
            application=str(ROOT / "spark_jobs" / job),
            conn_id=kwargs.pop("conn_id", "spark_default"),
            **kwargs,
        )

    def submit(self, context: Context) -> None:
        """Run the job to its end.

        :raises AirflowException: it has failed, or a RuntimeError: the hook raises either.
        """
        with tempfile.TemporaryDirectory(prefix="rehome-") as scratch:
            self._ship_sources(Path(scratch))
            SparkSubmitOperator.execute(self, context)

    def _ship_sources(self, scratch: Path) -> None:
        from include.packaging import build_job_zip, local_spark

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
