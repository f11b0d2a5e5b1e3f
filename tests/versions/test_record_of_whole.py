"""What a run of all tests on brokers writes down, and when it writes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.kafka.jvm import VERSION
from tests.versions.whole import ALL_TESTS, BROKER_TESTS, WHOLE_RECORD, FileOutcomes

DAGS, FILE, OTHER = "tests/dags", "tests/dags/drain/test_one.py", "tests/dags/test_two.py"
ROOT = Path(__file__).resolve().parents[2]
UNSET = ("deselect", "ignore", "ignore_glob")
ONE, TWO = f"{FILE}::test_it", f"{FILE}::test_that"


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
    option = SimpleNamespace(markexpr=expression, keyword=keyword, **dict.fromkeys(UNSET))
    return SimpleNamespace(option=option, args=paths)


def passed(test: str) -> list[Any]:
    return [reported(test, when) for when in ("setup", "call", "teardown")]


def run(record: Path, config: Any, tests: list[str], reports: list[Any]) -> None:
    files = FileOutcomes(record)
    files.expect(config, tests)
    files.expect(config, tests)  # as each process of tests does
    for report in reports:
        files.pytest_runtest_logreport(report)


def written(record: Path) -> Any:
    return json.loads(record.read_text())[VERSION]


def test_each_test_counts_once_in_its_file(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    skipped, broken, late, crashed = (f"{FILE}::test_{name}" for name in "abcd")
    reports = [
        *passed(ONE),
        reported(skipped, "setup", outcome="skipped", why="before 4.3 none"),
        reported(skipped, "teardown"),
        reported(broken, "setup"),
        reported(broken, "call", outcome="failed"),
        reported(broken, "teardown"),
        *passed(late)[:2],
        reported(late, "teardown", outcome="failed"),
        reported(crashed, "???", outcome="failed"),
    ]
    run(record, asked(DAGS), [ONE, skipped, broken, late, crashed], reports)
    assert written(record)["dags"]["tests"] == 5
    ((file, row),) = written(record)["dags"]["files"].items()
    assert file == FILE
    assert (row["passed"], row["reasons"]) == (1, {"before 4.3 none": 1})
    assert row["failed"] == sorted([broken, late, crashed])


def test_a_run_that_is_ended_keeps_the_files_whose_tests_have_all_ended(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    whole = f"{OTHER}::test_it"
    run(record, asked(DAGS), [ONE, TWO, whole], [*passed(ONE), *passed(TWO)[:2], *passed(whole)])
    assert written(record)["dags"]["tests"] == 3
    assert set(written(record)["dags"]["files"]) == {OTHER}


def test_files_that_are_no_longer_there_leave_the_record_with_the_next_run_of_their_folder(
    tmp_path: Path,
) -> None:
    record = tmp_path / "record.json"
    run(record, asked(DAGS), [ONE], passed(ONE))
    run(record, asked(OTHER), [f"{OTHER}::test_it"], passed(f"{OTHER}::test_it"))
    assert written(record)["dags"]["tests"] == 1, "a file is no whole folder"
    assert set(written(record)["dags"]["files"]) == {FILE, OTHER}
    run(record, asked(DAGS), [f"{OTHER}::test_it"], [])
    assert set(written(record)["dags"]["files"]) == {OTHER}
    assert written(record)["dags"]["tests"] == 1


def test_a_folder_with_a_file_that_cannot_be_imported_is_left_as_it_is(tmp_path: Path) -> None:
    files = FileOutcomes(tmp_path / "record.json")
    files.pytest_collectreport(pytest.CollectReport(FILE, "failed", "no module", []))
    files.expect(asked(DAGS), [f"{OTHER}::test_it"])
    for report in passed(f"{OTHER}::test_it"):
        files.pytest_runtest_logreport(report)
    assert not (tmp_path / "record.json").exists()


def test_a_folder_of_which_no_test_needs_brokers_is_written_down_too(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    run(record, asked("tests/quality"), [], [])
    assert written(record)["quality"] == {"tests": 0, "files": {}}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(asked(ONE), id="one test"),
        pytest.param(asked(DAGS, keyword="drain"), id="by a keyword"),
        pytest.param(asked(DAGS, expression="brokers"), id="other markers"),
        pytest.param(asked("tests", expression="not long"), id="of all, other markers"),
    ],
)
def test_a_run_of_some_tests_leaves_the_record_as_it_is(config: Any, tmp_path: Path) -> None:
    run(tmp_path / "record.json", config, [ONE], passed(ONE))
    assert not (tmp_path / "record.json").exists()


A_RUN = {
    "conftest.py": """
import os, pytest

pytest_plugins = ["tests.versions.whole"]

def pytest_configure(config):
    for name in ("brokers", "long", "simulated"):
        config.addinivalue_line("markers", name)

@pytest.fixture(autouse=True)
def unseen():
    assert "REHOME_KAFKA_BROKERS" not in os.environ
""",
    "tests/dags/drain/test_mixed.py": """
import pytest

@pytest.mark.brokers
def test_it(): pass

@pytest.mark.brokers
def test_that(): assert False

def test_alone(): assert False

@pytest.mark.brokers
@pytest.mark.long
def test_long(): assert False
""",
    "tests/cluster/test_skipped.py": """
import pytest

pytestmark = pytest.mark.brokers

@pytest.mark.skip(reason="before 4.3 none")
def test_skipped(): pass

@pytest.mark.parametrize("case", "abc")
def test_each(case): pass
""",
    "tests/planning/test_alone.py": "def test_alone(): pass\n",
}
"""Files of a small project: tests with and without brokers."""


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, 2])
def test_a_run_of_all_tests_counts_those_on_brokers(processes: int, tmp_path: Path) -> None:
    for name, text in A_RUN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\ntestpaths = tests\naddopts = --import-mode=importlib -m '{ALL_TESTS}'\n"
    )
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-n", str(processes)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), WHOLE_RECORD: "record.json"}
    side_by_side = ["--dist", "loadfile"] if processes else []
    done = subprocess.run(
        [*command, *side_by_side],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found = written(tmp_path / "record.json")
    assert {name: each["tests"] for name, each in found.items()} == {
        "cluster": 4,
        "dags": 2,
        "planning": 0,
    }
    rows = {file: row for each in found.values() for file, row in each["files"].items()}
    counts = {file: (row["passed"], row["failed"], row["reasons"]) for file, row in rows.items()}
    mixed = "tests/dags/drain/test_mixed.py"
    assert counts == {
        mixed: (1, [f"{mixed}::test_that"], {}),
        "tests/cluster/test_skipped.py": (3, [], {"before 4.3 none": 1}),
    }
