"""A standalone Spark cluster on this machine: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyspark

from local.process.guard import Guard
from local.process.waiting import wait_until
from tests.session.spark_session import QUICK_JVM

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"
ON_THIS_HOST = ("--host", "127.0.0.1", "--webui-port", "0")


class StandaloneSpark:
    """Starts when it is entered; ends when it is left, and also when its owner is killed.

    Master and workers run away from the checkout and know none of its paths.

    :ivar master_url: what spark-submit takes as ``--master``.
    :ivar work_dir: where workers put what their executors get shipped.
    """

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self._directory, self._workers = directory, workers
        self._guard = Guard()
        self.work_dir = directory / "work"
        self.master_url = ""

    def __enter__(self) -> StandaloneSpark:
        try:
            self._start()
        except BaseException:
            self._guard.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._guard.close()

    def _start(self) -> None:
        self.master_url = self._launch(
            "master.Master", r"Starting Spark master at (spark://\S+)", "--port", "0"
        )
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.work_dir))
        for _ in range(self._workers):
            self._launch("worker.Worker", r"(Successfully registered)", *size, self.master_url)

    def _launch(self, name: str, ready: str, *options: str) -> str:
        """Start one of Spark's own classes; what its log says once it is ready."""
        log = self._directory / f"{name}-{len(list(self._directory.glob('*.log')))}.log"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._directory),
            "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        }
        # PWD as the home keeps the checkout out of the executors' own working directory.
        command = ["env", "-C", str(self._directory), str(SPARK_CLASS), f"{DEPLOY}.{name}"]
        process = self._guard.spawn([*command, *ON_THIS_HOST, *options], log, env)

        def reported() -> re.Match[str] | None:
            assert process.poll() is None, log.read_text()
            return re.search(ready, log.read_text())

        found = wait_until(reported, f"{name}, see {log}", timeout_s=120)
        assert found is not None
        return found.group(1)
