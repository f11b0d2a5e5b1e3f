"""Archives the classes that a plan job loads, once at set-up: Spark then starts in less time.

JVMs map the archive instead of parsing and verifying some thousands of classes (class data sharing,
JEP 350). What to put in is learned from a job on a small cluster: ``python -m
local.spark_archive``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from rehome.cluster.snapshot.model import BROKERS, LOG_DIRS, REPLICAS, TOPICS, Snapshot
from rehome.packaging import CLASS_ARCHIVE, DRIVER_JVM, JOB_PATH, ROOT
from rehome.warehouse import Warehouse

REQUEST = {"action": "drain", "brokers": [1]}


def main() -> int:
    """Run a job, archive what it has loaded; returns the job's exit code."""
    CLASS_ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    CLASS_ARCHIVE.unlink(missing_ok=True)
    unfinished = CLASS_ARCHIVE.with_suffix(".unfinished")
    with tempfile.TemporaryDirectory(prefix="spark-classes-") as name:
        run = subprocess.run(
            _job(Path(name), unfinished),
            env={
                **os.environ,
                "PYTHONPATH": JOB_PATH,
                "PYSPARK_PYTHON": sys.executable,
            },
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode == 0:
        unfinished.replace(CLASS_ARCHIVE)
    else:
        print(run.stdout[-3000:], run.stderr[-3000:], sep="\n", file=sys.stderr)
    return run.returncode


def _job(directory: Path, archive: Path) -> list[str]:
    """The command of a job whose JVM writes the archive when it ends."""
    request = directory / "request.json"
    request.write_text(json.dumps(REQUEST))
    options = f"{DRIVER_JVM} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    return [
        str(Path(sys.executable).parent / "spark-submit"),
        *("--master", "local[2]", "--conf", "spark.driver.host=127.0.0.1"),
        *("--conf", f"spark.driver.extraJavaOptions={options}"),
        *("--conf", "spark.ui.enabled=false"),
        str(ROOT / "spark_jobs" / "plan.py"),
        *("--snapshot", Warehouse(directory.as_uri()).write_snapshot(_snapshot())),
        *("--request", str(request), "--out", (directory / "plan").as_uri()),
    ]


def _snapshot() -> Snapshot:
    """Three brokers, two replicas."""
    brokers: list[dict[str, Any]] = [
        {
            "broker": broker,
            "host": "localhost",
            "port": 9092,
            "rack_path": [],
            "live": True,
            "answered": True,
        }
        for broker in (1, 2, 3)
    ]
    log_dirs = [
        {
            "broker": broker,
            "log_dir": "/data",
            "total_bytes": 1000,
            "usable_bytes": 900,
            "offline": False,
            "cordoned": False,
            "stray_replicas": 0,
        }
        for broker in (1, 2, 3)
    ]
    topic = {"topic": "t", "topic_id": "", "internal": False, "visible": True, "partitions": 1}
    replicas = [
        {
            "topic": "t",
            "partition": 0,
            "broker": broker,
            "position": position,
            "is_leader": position == 0,
            "in_isr": True,
            "adding": False,
            "removing": False,
            "log_dir": "/data",
            "size_bytes": 1,
            "log_end_offset": 1,
        }
        for position, broker in enumerate((1, 2))
    ]
    return Snapshot(
        cluster_id="small",
        taken_at=datetime.now(UTC),
        duration_s=0.0,
        brokers=pa.Table.from_pylist(brokers, schema=BROKERS),
        log_dirs=pa.Table.from_pylist(log_dirs, schema=LOG_DIRS),
        topics=pa.Table.from_pylist([topic | {"replication_factor": 2}], schema=TOPICS),
        replicas=pa.Table.from_pylist(replicas, schema=REPLICAS),
    )


if __name__ == "__main__":
    sys.exit(main())
