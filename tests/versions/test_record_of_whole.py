"""What a run of all tests on brokers writes down, and when it writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.kafka.jvm import VERSION
from tests.versions.whole import BROKER_TESTS, Folders

DAGS, ONE = "tests/dags", "tests/dags/drain/test_one.py::test_it"


def reported(test: str, when: str, *, outcome: str = "passed", why: str = "") -> Any:
    longrepr = (test, 1, f"Skipped: {why}") if why else None
    return pytest.TestReport(
        test,
        (test, 1, test),
        {},
        outcome,  # type: ignore[arg-type]
        longrepr,
        when,  # type: ignore[arg-type]
    )


def asked(*paths: str, expression: str = BROKER_TESTS, keyword: str = "") -> Any:
    option = SimpleNamespace(markexpr=expression, keyword=keyword, lf=False, deselect=None)
    return SimpleNamespace(config=SimpleNamespace(option=option, args=paths))


def passed(test: str) -> list[Any]:
    return [reported(test, when) for when in ("setup", "call", "teardown")]


def test_each_test_counts_once_in_its_folder(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    folders = Folders(record)
    skipped, broken, late = (f"tests/dags/test_{n}.py::test_it" for n in ("a", "b", "c"))
    for report in [
        *passed(ONE),
        reported(skipped, "setup", outcome="skipped", why="before 4.3 none"),
        reported(skipped, "teardown"),
        reported(broken, "setup"),
        reported(broken, "call", outcome="failed"),
        reported(broken, "teardown"),
        *passed(late)[:2],
        reported(late, "teardown", outcome="failed"),
        *passed("tests/ui/test_d.py::test_it"),
    ]:
        folders.pytest_runtest_logreport(report)
    folders.pytest_sessionfinish(asked(DAGS), 1)
    (found,) = json.loads(record.read_text())[VERSION].items()
    name, counts = found
    assert name == "dags", "tests/ui was not asked for"
    assert (counts["passed"], counts["skipped"]) == (1, 1)
    assert counts["failed"] == sorted([broken, late])
    assert counts["reasons"] == {"before 4.3 none": 1}


def test_a_folder_of_which_no_test_needs_brokers_is_written_down_too(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    Folders(record).pytest_sessionfinish(asked("tests/quality"), 5)
    assert json.loads(record.read_text())[VERSION]["quality"]["passed"] == 0


@pytest.mark.parametrize(
    ("session", "status"),
    [
        pytest.param(asked(DAGS), 2, id="ended by hand"),
        pytest.param(asked(DAGS, keyword="drain"), 0, id="by a keyword"),
        pytest.param(asked(DAGS, expression="brokers"), 0, id="other markers"),
    ],
)
def test_a_run_of_some_tests_leaves_the_record_as_it_is(
    session: Any, status: int, tmp_path: Path
) -> None:
    folders = Folders(tmp_path / "record.json")
    for report in passed(ONE):
        folders.pytest_runtest_logreport(report)
    folders.pytest_sessionfinish(session, status)
    assert not (tmp_path / "record.json").exists()


def test_a_file_is_no_whole_folder(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    Folders(record).pytest_sessionfinish(asked("tests/dags/drain", "tests/conftest.py"), 0)
    assert not record.exists()
