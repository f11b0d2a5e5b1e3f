"""Runs the tests of the files that were just saved: `make watch`, by watchfiles.

Each time in a process of its own, so that nothing of before is imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

from tests.imports import ROOT, TESTS, sources
from tests.test_findable import files_of_tests, listed, namesake, places


def files_of(module: str, files: Collection[str]) -> Iterable[str]:
    """The test files of a module, by its name and by the table; paths below tests/."""
    yield from (file for file in files if namesake(file, places()) == module)
    yield from (file for name, file in listed() if name == module)


def files_to_run(saved: Iterable[Path]) -> list[Path]:
    """A test file stands for itself, any other of tests/ for those in its folder, a module for its
    tests.
    """
    names = {path: name for name, path in sources_below_tests().items()}
    files = files_of_tests()
    found: dict[Path, None] = {}
    for path in saved:
        if path.name.startswith("test_"):
            found[path] = None
        elif TESTS in path.parents:
            found |= dict.fromkeys(path.parent.glob("test_*.py"))
        elif path in names:
            found |= dict.fromkeys(TESTS / f"{file}.py" for file in files_of(names[path], files))
    return [path for path in found if path.exists()]


def sources_below_tests() -> dict[str, Path]:
    """Module, by the path that its tests would have below tests/ → its file."""
    return {place: sources()[name] for place, name in places().items()}


def run() -> None:
    """Run them, with the arguments of this process; watchfiles says what was saved."""
    saved = json.loads(os.environ.get("WATCHFILES_CHANGES") or "[]")
    paths = files_to_run(Path(path) for _, path in saved)
    if paths:
        names = [str(path.relative_to(ROOT) if ROOT in path.parents else path) for path in paths]
        pytest.main([*sys.argv[1:], *names])
    print("Waiting for a file of the code or of its tests to be saved.", flush=True)
