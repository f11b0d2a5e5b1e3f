"""Which committed results are of older code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.code.stale import CODE, RESULTS, ROOT, Git, ages


def test_every_result_has_the_code_that_it_stands_for() -> None:
    assert {path.name for path in (ROOT / RESULTS).iterdir()} == CODE.keys()
    missing = {place for places in CODE.values() for place in places if not (ROOT / place).exists()}
    assert not missing


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A history of its own."""
    (tmp_path / RESULTS).mkdir(parents=True)
    for arguments in (("init", "-q"), ("config", "user.name", "a"), ("config", "user.email", "b")):
        Git(tmp_path).say(*arguments)
    return tmp_path


def commit(checkout: Path, name: str, text: str) -> str:
    """Commit a file; the commit."""
    (checkout / name).write_text(text)
    Git(checkout).say("add", name)
    Git(checkout).say("commit", "-qm", name)
    return Git(checkout).say("rev-parse", "--short", "HEAD")


def test_commits_to_the_code_of_a_result_are_counted_since_it_was_measured(checkout: Path) -> None:
    measured = commit(checkout, "code.py", "1")
    commit(checkout, "code.py", "2")
    names_it, names_none = (json.dumps(each) for each in ({"commit": measured}, [{"moves": 1}]))
    commit(checkout, f"{RESULTS}/one.json", names_it)
    written = commit(checkout, f"{RESULTS}/two.json", names_none)
    commit(checkout, "code.py", "3")
    commit(checkout, "other.py", "1")
    of = {"one.json": ("code.py",), "two.json": ("code.py",)}
    found = [(age.result, age.commit, age.since) for age in ages(checkout, of)]
    assert found == [("one.json", measured, 2), ("two.json", written, 1)]


def test_a_commit_that_is_not_in_the_history_counts_for_nothing(checkout: Path) -> None:
    written = commit(checkout, f"{RESULTS}/one.json", json.dumps({"commit": "0000000"}))
    (age,) = ages(checkout, {"one.json": ("code.py",)})
    assert (age.commit, age.since) == (written, 0)
