"""What the judge must find of windows in which people are asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from world.judge.answers_in_time import Asked, WindowRun, WindowsSeen, wrong_in_windows
from world.judge.flights import Span
from world.judge.promises import DAY_S, Promise, Promises, TakenUp
from world.judge.violations import Kind

ASKED = Asked("A:run-1", "window/run-1", Span(130.0, 240.0), lapsed=True, window_s=240.0)
RUNS = [WindowRun("A:run-1", 120.0, 120.0), WindowRun("A:run-2", 360.0, 361.0)]
RIGHT = WindowsSeen("A", [ASKED], RUNS, {"window/run-1"})


def found(seen: WindowsSeen) -> set[Kind]:
    return {each.kind for each in wrong_in_windows([seen], 1000.0)}


def test_a_question_that_lapses_with_its_window_and_is_told_is_right() -> None:
    assert found(RIGHT) == set()


def test_a_lapse_that_no_alert_tells_is_found() -> None:
    assert found(replace(RIGHT, told=())) == {Kind.LAPSED_UNTOLD}
    answered = replace(ASKED, lapsed=False)
    assert found(replace(RIGHT, told=(), asked=[answered])) == set()


@pytest.mark.parametrize(
    ("until", "started", "kinds"),
    [
        (269.0, 361.0, set()),
        (271.0, 361.0, {Kind.ASKS_PAST_WINDOW}),
        (430.0, 430.0, {Kind.ASKS_PAST_WINDOW, Kind.WINDOW_BLOCKED}),
        (430.0, None, {Kind.ASKS_PAST_WINDOW, Kind.WINDOW_BLOCKED}),
    ],
)
def test_a_question_that_stays_and_the_window_that_waits_for_it_are_found(
    until: float, started: float | None, kinds: set[Kind]
) -> None:
    asked = replace(ASKED, open=Span(130.0, until))
    runs = [RUNS[0], replace(RUNS[1], started_s=started)]
    assert found(replace(RIGHT, asked=[asked], runs=runs)) == kinds


@pytest.mark.parametrize(
    ("opens_s", "paused", "false"),
    [
        (120.0, (), False),
        (360.0 + DAY_S, (), False),
        (240.0, (), True),
        (120.0, (Span(0.0, 90.0),), True),
        (120.0, (Span(61.0, 90.0),), False),
        (120.0, (Span(0.0, 60.5),), False),
    ],
)
def test_a_promise_is_false_without_its_window_or_while_that_is_paused(
    opens_s: float, paused: tuple[Span, ...], *, false: bool
) -> None:
    made = [Promise(TakenUp(opens_s), "request", Span(60.0, 61.5))]
    found = list(
        wrong_in_windows([replace(RIGHT, promises=Promises(made, (120.0, 360.0), paused))], 1000.0)
    )
    assert [each.kind for each in found] == [Kind.FALSE_CLAIM] * false
