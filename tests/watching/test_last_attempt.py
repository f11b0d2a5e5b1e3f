"""When another attempt is made for a finding, and what people read of the last one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.watching.last_attempt import (
    AGAIN,
    FINAL,
    Attempted,
    LastAttempt,
    attempt_text,
    next_step,
)

OPENED = datetime(2030, 1, 2, tzinfo=UTC)
ENDED = OPENED + timedelta(hours=1)
WHY = Cause(CauseKind.GATE, "No plan.\nA broker is dead.", "", "", ENDED, "plan")


def attempt(outcome: Attempted, in_a_row: int = 1, cause: Cause | None = None) -> LastAttempt:
    ended = None if outcome is Attempted.UNDER_WAY else ENDED
    return LastAttempt("run-1", OPENED, ended, outcome, "p1", cause, in_a_row=in_a_row)


@pytest.mark.parametrize(
    ("in_a_row", "minutes"), [(1, 30), (2, 60), (5, 480), (7, 1440), (99, 1440)]
)
def test_each_in_a_row_that_went_wrong_doubles_the_wait_up_to_a_day(
    in_a_row: int, minutes: int
) -> None:
    for outcome in AGAIN:
        found = attempt(outcome, in_a_row)
        again_at = ENDED + timedelta(minutes=minutes)
        assert found.again_at == again_at
        before = again_at - timedelta(seconds=1)
        assert found.holds(OPENED, before)
        assert found.holds(ENDED, before), "the finding has opened anew"
        assert not found.holds(OPENED, again_at)
        assert not found.holds(OPENED, before, by_person=True)


@pytest.mark.parametrize("outcome", sorted(FINAL))
def test_what_would_come_to_the_same_waits_for_the_finding_to_open_anew(
    outcome: Attempted,
) -> None:
    found, later = attempt(outcome), ENDED + timedelta(days=99)
    assert found.holds(OPENED, later, by_person=True)
    assert not found.holds(later, later)
    assert "closed and opened anew" in next_step(found)


def test_a_plan_that_could_do_all_it_was_to_names_no_reasons_to_change() -> None:
    found = attempt(Attempted.NOT_ENOUGH)
    assert "what the reasons name" not in next_step(found)
    assert "what is left takes a person" in next_step(found)
    kept = replace(found, reasons=("Partition orders-0: a cap",))
    assert "what the reasons name" in next_step(kept)


def test_what_a_budget_left_is_gone_on_with_at_once_and_what_has_not_ended_is_waited_for() -> None:
    assert not attempt(Attempted.PARTLY).holds(OPENED, ENDED)
    for outcome in (Attempted.UNDER_WAY, Attempted.HANDED_OVER):
        assert attempt(outcome).holds(OPENED, ENDED + timedelta(days=9), by_person=True)


def test_people_read_what_came_of_it_why_and_when_it_is_tried_again() -> None:
    assert attempt_text(attempt(Attempted.REFUSED, 2, WHY)) == (
        "The last attempt has changed nothing (2 times in a row): No plan. A broker is dead. It is "
        "not tried again before 2030-01-02 02:00 UTC. To have it tried again now, trigger "
        "watch_clusters by hand."
    )
    for outcome in Attempted:
        assert attempt_text(attempt(outcome)).endswith((".", "page"))
