"""What a run has reached is counted, and what none has is named."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from world import cases, coverage
from world.outcome import run
from world.simulate import DOCUMENT, RESULT


@pytest.mark.slow
def test_what_a_run_reaches_is_counted_and_the_rest_is_named() -> None:
    found = run(cases.TOPIC_DELETED).reached
    assert found["event", "move gone"] == 2
    assert found["plan", "done"] == 1
    assert found["task", "execute"] == 1
    shown = coverage.as_json(found)
    assert shown["reached"]["event"]["move gone"] == 2
    assert "orphaned" in shown["never"]["alert"]
    assert "move gone" not in shown["never"]["event"]


@pytest.mark.slow
def test_waits_are_counted_by_what_is_waited_for() -> None:
    to_one = (("t", 0, (4, 2)), ("t", 1, (2, 4)))
    plan = replace(cases.PLAN, moves=to_one, slots=1)
    found = run(replace(cases.RATE_DELETED, plans=(plan,))).reached
    assert found["wait", "slot"] > 0
    assert run(replace(cases.RATE_DELETED, plans=(plan,))).reached == found


def test_causes_of_ends_and_ends_of_the_plan_job_are_counted() -> None:
    unthrottled = replace(cases.PLAN, unthrottled=True)
    found = run(replace(cases.TOPIC_DELETED, plans=(unthrottled,))).reached
    assert found["cause of an end", "policy"] == 1
    drain = replace(cases.PLAN, moves=(), drains=(9,), tried_out=True)
    found = run(replace(cases.TOPIC_DELETED, plans=(drain,))).reached
    assert found["end of the plan job", "invalid_request"] == 1
    assert found["end of the plan job", "planned"] == 0


def test_the_table_has_a_line_for_each_kind() -> None:
    lines = coverage.table(coverage.as_json(run(cases.TOPIC_DELETED).reached)).splitlines()
    assert len(lines) > 6
    assert all(line.count("|") == 4 for line in lines)


def test_the_page_has_the_table_of_what_was_committed() -> None:
    assert coverage.table(json.loads(RESULT.read_text())) in DOCUMENT.read_text()
