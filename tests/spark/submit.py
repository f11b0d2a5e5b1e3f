"""spark-submit as an operator calls it: a job, its zip, and no checkout anywhere near."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rehome.packaging import build_job_zip
from tests.session.spark_session import QUICK

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]


def submit(
    job: str,
    arguments: Sequence[str],
    directory: Path,
    *,
    master: str = "local[2]",
    conf: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a job of spark_jobs/ from a copy in ``directory``, with what the zip holds."""
    alone = directory / "elsewhere"
    alone.mkdir(exist_ok=True)
    script = shutil.copy(ROOT / "spark_jobs" / job, alone)
    archive = build_job_zip(alone / "rehome.zip")
    settings = [
        part for item in (QUICK | dict(conf or {})).items() for part in ("--conf", "=".join(item))
    ]
    return subprocess.run(
        [
            *(str(BIN / "spark-submit"), "--master", master, *settings),
            *("--py-files", str(archive), str(script), *arguments),
        ],
        cwd=alone,
        env={
            "PATH": f"{BIN}:/usr/bin:/bin",
            "HOME": str(directory),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
