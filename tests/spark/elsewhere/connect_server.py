"""A Spark Connect server on this machine, as PySpark brings it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.process.guard import Guard
from local.process.waiting import wait_until
from tests.session.spark_session import QUICK_JVM

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
CONF = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "INFO",
}


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """Its ``sc://`` address. Its Python finds Rehome nowhere; neither does it know the checkout."""
    directory.mkdir()
    log = directory / "server.log"
    settings = [part for item in CONF.items() for part in ("--conf", "=".join(item))]
    binary = Path(sys.executable).parent / "spark-submit"
    command = [str(binary), "--class", SERVER, "--master", "local[2]", *settings, "spark-internal"]
    env = {
        "PATH": f"{binary.parent}{os.pathsep}/usr/bin:/bin",
        "HOME": str(directory),
        **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": QUICK_JVM,
    }
    guard = Guard()
    try:
        process = guard.spawn(["env", "-C", str(directory), *command], log, env)

        def reported() -> re.Match[str] | None:
            assert process.poll() is None, log.read_text()
            return re.search(r"server started at: \S*?:(\d+)", log.read_text())

        found = wait_until(reported, f"the server, see {log}", timeout_s=300)
        assert found is not None
        yield f"sc://127.0.0.1:{found.group(1)}"
    finally:
        guard.close()
