"""What Airflow's processes import when they start, before they fork one for each task."""

from __future__ import annotations

import subprocess
import sys

import pytest

from local.airflow.standalone import BEFORE_TASKS

TELL = "import airflow_local_settings, sys; print(*sorted({'kafka', 'pyarrow'} & {*sys.modules}))"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "imported"), [("scheduler", "kafka pyarrow"), ("triggerer", "")]
)
def test_a_process_that_forks_one_for_each_task_imports_what_tasks_need(
    component: str, imported: str
) -> None:
    asked = [sys.executable, "-c", f"import sys; sys.path.append({str(BEFORE_TASKS)!r}); {TELL}"]
    told = subprocess.run([*asked, component], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == imported
