"""Each application of spark_jobs/ starts by hand, from any folder and without ``PYTHONPATH``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.session import is_submitted

ROOT = Path(__file__).resolve().parents[2]
JOBS = sorted(
    path.name for path in (ROOT / "spark_jobs").glob("*.py") if "__main__" in path.read_text()
)


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_a_job_explains_itself(job: str, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    asked = [sys.executable, str(ROOT / "spark_jobs" / job), "--help"]
    done = subprocess.run(asked, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"usage: {job}" in done.stdout


@pytest.mark.parametrize(
    ("environment", "is_so"),
    [
        ({"PYSPARK_GATEWAY_PORT": "4711"}, True),  # a driver in a container of YARN's
        ({"SPARK_ENV_LOADED": "1"}, True),
        ({"MASTER": "local[2]"}, False),
    ],
)
def test_what_spark_has_started_takes_its_master_from_there(
    environment: dict[str, str], is_so: bool
) -> None:
    assert is_submitted(environment) is is_so
