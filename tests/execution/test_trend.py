"""The pace of the busiest broker: a line through what has passed, and not the last look."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.execution.trend import LOOKS_STRAY_S, trend
from tests.execution.observed import looks
from tests.execution.properties import few_and_many, property_of

THROTTLE = 100


def steady(seconds: int, part: float, every_s: int = 5) -> list[tuple[float, int]]:
    """A million bytes at this part of the throttle."""
    times = range(0, seconds + 1, every_s)
    return [(at, round(1_000_000 - at * part * THROTTLE)) for at in times]


def test_before_anything_is_measured_the_pace_is_what_is_expected() -> None:
    line = trend(looks((0, 9000)), expected=0.8)
    assert (line.part, line.ahead_bytes) == (pytest.approx(0.8), 0)


@few_and_many(50, 2000)
def test_a_steady_pace_is_found_within_a_minute_whatever_was_expected(examples: int) -> None:
    @property_of(examples)
    @given(st.floats(0.4, 1.1), st.floats(0.6, 1.0))
    def holds(part: float, expected: float) -> None:
        line = trend(looks(*steady(60, part)), expected)
        assert line.part == pytest.approx(part, abs=0.25 * abs(part - expected) + 1e-3)

    holds()


def test_a_look_in_a_silence_changes_neither_pace_nor_what_is_left_by_much() -> None:
    """Nothing has come for five seconds, as brokers do: it comes with the next bytes."""
    before = steady(60, 0.95)
    silent = [*before, (65, before[-1][1])]
    line = trend(looks(*silent), 0.95)
    assert line.part == pytest.approx(0.95, abs=0.03)
    assert -5 * THROTTLE < line.ahead_bytes < -3 * THROTTLE
    assert trend(looks(*before), 0.95).part > line.part


def test_what_came_at_once_in_the_beginning_is_not_the_pace() -> None:
    burst = [(0, 1_000_000), *((at, left - 9 * 95) for at, left in steady(40, 0.95)[1:])]
    too_much = trend(looks(*burst), 0.95).part - 0.95
    assert 0 < too_much < 0.6 * 9 / 40


def test_a_change_of_the_throttle_counts_from_its_time_on() -> None:
    full = looks(*steady(50, 0.9), throttle=THROTTLE)
    begin = full[-1].busiest_bytes or 0
    half = looks(*((50 + at, begin - at * 45) for at in (5, 10)), throttle=THROTTLE // 2)
    halved = [*full[:-1], replace(full[-1], throttle_bytes_per_s=THROTTLE // 2), *half]
    assert trend(halved, 0.9).part == pytest.approx(0.9, abs=0.01)


def test_the_pace_forgets_and_counts_no_time_in_which_nothing_was_in_flight() -> None:
    slow = [(0, 9000), (300, 8999)]
    then_fast = [(300 + at, round(8999 - at * 100)) for at in range(10, 121, 10)]
    assert trend(looks(*slow, *then_fast), 0.5).part == pytest.approx(1.0, abs=0.05)
    (idle, *rest) = looks((0, 9000), (50, 9000), *((50 + at, 9000 - at * 100) for at in (30, 60)))
    assert trend([replace(idle, in_flight=0), *rest], 1.0).part == pytest.approx(1.0)


def test_no_byte_for_half_a_minute_is_no_pace() -> None:
    assert trend(looks((0, 9000), (15, 9000), (29, 9000)), 0.9).part > 0
    assert trend(looks((0, 9000), (15, 9000), (30, 9000)), 0.9).part == 0
    assert LOOKS_STRAY_S < 30
