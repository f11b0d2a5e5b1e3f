"""Each application of spark_jobs/ starts by hand, from any folder and without ``PYTHONPATH``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
