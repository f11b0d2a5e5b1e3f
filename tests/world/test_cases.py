"""Named scripts, and what each shows today: nothing, where it is mended."""

from __future__ import annotations

import pytest

from world import cases
from world.judge.violations import Kind
from world.known import Issue, issue_of
from world.outcome import run
from world.script import Script

MENDED = (
    "TWO_REHOMES",
    "LEDGER_RESTORED",
    "LEDGER_FROM_BEFORE",
    "TWO_CORDONS",
    "RATE_DELETED",
    "LIST_DELETED",
    "LIST_DELETED_LATE",
    "TOPIC_CREATED_AGAIN",
    "DAG_PAUSED",
    "TOPIC_DELETED",
    "PAUSED_AT_WINDOW_END",
    "PAUSED_BEFORE_WINDOW_END",
    "NEVER_CANCELLED",
    "SOURCE_LOST",
    "OUTPACED",
    "RECORDS_DELETED",
)
OPEN: dict[str, tuple[Issue, set[Kind]]] = {}
"""Not mended yet: by which fault of the issue, and as what it is found."""


def script(name: str) -> Script:
    found: Script = getattr(cases, name)
    return found


def test_every_case_is_mended_or_open() -> None:
    named = {name for name, value in vars(cases).items() if isinstance(value, Script)}
    assert named == {*MENDED, *OPEN}


@pytest.mark.parametrize("name", MENDED)
def test_what_is_mended_shows_nothing(name: str) -> None:
    outcome = run(script(name))
    assert outcome.violations == ()
    assert sum(outcome.states.values()) <= len(outcome.script.plans)


@pytest.mark.parametrize("name", OPEN)
def test_what_is_open_is_found_and_explained(name: str) -> None:
    issue, kinds = OPEN[name]
    outcome = run(script(name))
    assert {found.kind for found in outcome.violations} == kinds
    assert {issue_of(outcome.script, found) for found in outcome.violations} == {issue}
