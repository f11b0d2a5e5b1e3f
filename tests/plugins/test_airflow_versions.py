"""Nothing of the code that Airflow loads is imported from where only its newest version has it."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome import airflow_versions

ROOT = Path(__file__).resolve().parents[2]
ONE_PLACE = ROOT / "plugins" / "rehome" / "airflow_versions.py"
MOVED = {
    "airflow.configuration": set(),
    "airflow.sdk.configuration": set(),
    "airflow.sdk.exceptions": {"AirflowException", "AirflowRuntimeError"},
    "airflow.sdk.observability": set(),
    "airflow.sdk.types": set(),
}
"""Modules that Airflow 3.1.8 does not have, or not with these names; and what it has of them. The
provider common.compat has the others in one place for all versions.
"""


def imported(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


@pytest.mark.slow
@pytest.mark.parametrize("room", ["dags", "include", "plugins", "spark_jobs"])
def test_what_has_moved_is_imported_from_one_place(room: str) -> None:
    files = [path for path in (ROOT / room).rglob("*.py") if path != ONE_PLACE]
    found = {
        f"{path.relative_to(ROOT)}: {module}.{name}"
        for path in files
        for module, name in imported(path)
        if module in MOVED and name not in MOVED[module]
    }
    assert found == set()


@pytest.mark.slow
@pytest.mark.parametrize("room", ["dags", "plugins"])
def test_a_run_of_a_timetable_is_not_made_by_its_fields(room: str) -> None:
    """Airflow 3.2 asks for two more of them; without these it plans no run of the DAG."""
    made = {
        f"{path.relative_to(ROOT)}: {node.lineno}"
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "DagRunInfo"
    }
    assert made == set()


def test_the_one_place_has_what_this_version_has() -> None:
    assert airflow_versions.TaskDeferralError.__module__.startswith("airflow.")
    assert callable(airflow_versions.stats.gauge)


def test_a_task_that_waits_for_a_person_is_known_in_each_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [state.value for state in airflow_versions.asking_states()] == [
        "awaiting_input",
        "deferred",
    ]

    class Before(enum.Enum):
        DEFERRED = "deferred"
        SUCCESS = "success"

    monkeypatch.setattr(airflow_versions, "TaskInstanceState", Before)
    assert airflow_versions.asking_states() == [Before.DEFERRED]
