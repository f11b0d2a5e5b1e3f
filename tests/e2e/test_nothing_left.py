"""Nothing is left of an Airflow whose owner is gone."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from local.process.waiting import wait_until
from tests.e2e.runs import TIMEOUT_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


# tests/local/test_guard.py shows in `make test` what ends it.
@pytest.mark.long
def test_airflows_processes_end_when_their_caller_was_killed(tmp_path: Path) -> None:
    code = f"""
        import signal
        from pathlib import Path
        from local.airflow.standalone import AirflowStandalone
        airflow = AirflowStandalone(Path({str(tmp_path)!r}))
        airflow.start()
        signal.pause()
    """
    caller = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    try:
        wait_until(lambda: components_of(tmp_path) == COMPONENTS, "every component", TIMEOUT_S)
    finally:
        caller.kill()
        caller.wait(120)
    wait_until(lambda: not processes_of(tmp_path), "every process of it to end", 240)


COMPONENTS = {"scheduler", "dag-processor", "triggerer"}  # the API server renames itself


def components_of(home: Path) -> set[str]:
    """Airflow's components that run with this AIRFLOW_HOME."""
    words: set[str] = set()
    for process in processes_of(home):
        with suppress(psutil.NoSuchProcess):
            words.update(process.cmdline())
    return COMPONENTS & words


def processes_of(home: Path) -> list[psutil.Process]:
    """Processes whose environment names this AIRFLOW_HOME."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("AIRFLOW_HOME") == str(home):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
