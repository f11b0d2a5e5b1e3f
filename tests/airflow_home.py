"""An Airflow of the test process's own: a plugin, to be there before Airflow is imported."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(tempfile.mkdtemp(prefix="rehome-test-airflow-"))

assert "airflow" not in sys.modules, "Airflow reads its settings when it is imported: too late"
os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
}


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)
