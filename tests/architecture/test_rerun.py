"""`make watch`: what is saved has its tests run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from local.process.guard import Guard
from local.process.waiting import wait_until
from tests.architecture.rerun import files_to_run
from tests.imports import ROOT, TESTS

TIMEOUT_S = 120


@pytest.mark.parametrize(
    ("saved", "files"),
    [
        ("include/rehome/planning/search/shed.py", ["planning/search/test_shed.py"]),
        ("tests/test_rooms.py", ["test_rooms.py"]),
        ("plugins/rehome/links.py", ["plugins/test_links.py"]),
        (
            "tests/page/no_test.py",
            sorted(f"page/{p.name}" for p in (TESTS / "page").glob("test_*")),
        ),
        ("README.md", []),
    ],
)
def test_the_tests_of_a_saved_file(saved: str, files: list[str]) -> None:
    found = sorted(path.relative_to(TESTS).as_posix() for path in files_to_run([ROOT / saved]))
    assert set(files) <= set(found)
    assert bool(files) == bool(found)


def test_a_module_that_has_no_file_of_its_name_has_its_tests_by_the_table() -> None:
    assert files_to_run([ROOT / "include/rehome/alerts/kinds.py"])


def test_tests_are_run_when_they_are_saved(tmp_path: Path) -> None:
    folder, log = tmp_path / "watched", tmp_path / "log"
    folder.mkdir()
    command = [sys.executable, "-m", "watchfiles", "--filter", "python"]
    command += ["--args", "-p no:cacheprovider -q", "tests.architecture.rerun.run", str(folder)]
    given = os.environ | {"PYTHONPATH": str(ROOT)}
    guard = Guard()
    guard.spawn(command, log, given)
    try:
        wait_until(lambda: "Waiting" in log.read_text(), "it to watch", TIMEOUT_S)
        (folder / "test_saved.py").write_text("def test_it() -> None:\n    assert 1\n")
        wait_until(lambda: "1 passed" in log.read_text(), "the test to be run", TIMEOUT_S)
    finally:
        guard.close()
