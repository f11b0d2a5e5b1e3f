"""The rate that brokers deliver: a line through many samples, not the last one alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.run.flows import BrokerFlow, FlowSample
from rehome.execution.admission.slots import Direction, Slot
from rehome.execution.estimate.rate_regression import Trend, trend
from tests.examples import few_and_many, property_of
from tests.execution.observed import T0, flows

THROTTLE = 100
SLOT = Slot(Direction.IN, 3)


def steady(seconds: int, part: float, every_s: int = 5) -> list[tuple[float, int]]:
    """A million bytes at this part of the throttle."""
    times = range(0, seconds + 1, every_s)
    return [(at, round(1_000_000 - at * part * THROTTLE)) for at in times]


def of(samples: Sequence[FlowSample], expected: float, throttle: int = THROTTLE) -> Trend:
    """Where one broker has most left."""
    now = samples[-1].at if samples else T0
    return trend(samples, now, {SLOT: 1000}, throttle, expected)


def test_before_anything_is_measured_the_pace_is_what_is_expected() -> None:
    line = of([], expected=0.8)
    assert line.part == pytest.approx(0.8)
    assert line.ahead_s == 0
    assert line.bytes_per_s(SLOT) == pytest.approx(80)


@few_and_many(50, 2000)
def test_a_steady_pace_is_found_within_a_minute_whatever_was_expected(examples: int) -> None:
    @property_of(examples)
    @given(st.floats(0.4, 1.1), st.floats(0.6, 1.0))
    def holds(part: float, expected: float) -> None:
        line = of(flows(*steady(60, part)), expected)
        assert line.part == pytest.approx(part, abs=0.25 * abs(part - expected) + 1e-3)

    holds()


def test_a_poll_in_a_silence_changes_neither_pace_nor_what_is_left_by_much() -> None:
    """Nothing has come for five seconds, as brokers do: it comes with the next bytes."""
    before = steady(60, 0.95)
    silent = [*before, (65, before[-1][1])]
    line = of(flows(*silent), 0.95)
    assert line.part == pytest.approx(0.95, abs=0.03)
    assert -5 < line.ahead_s < -3
    assert of(flows(*before), 0.95).part > line.part


def test_bytes_delivered_at_once_in_the_beginning_do_not_count_as_the_pace() -> None:
    burst = [(0, 1_000_000), *((at, left - 9 * 95) for at, left in steady(40, 0.95)[1:])]
    too_much = of(flows(*burst), 0.95).part - 0.95
    assert 0 < too_much < 0.6 * 9 / 40


def test_a_change_of_the_throttle_counts_from_its_time_on() -> None:
    full = flows(*steady(50, 0.9))
    begin = 1_000_000 - 50 * 90
    half = flows(*((50 + at, begin - at * 45) for at in (0, 5, 10)), throttle=THROTTLE // 2)
    assert of([*full, *half], 0.9, THROTTLE // 2).part == pytest.approx(0.9, abs=0.01)


def test_the_pace_forgets_and_counts_no_time_in_which_nothing_was_in_flight() -> None:
    slow = [(0, 9000), (300, 8999)]
    then_fast = [(300 + at, round(8999 - at * 100)) for at in range(10, 121, 10)]
    assert of(flows(*slow, *then_fast), 0.5).part == pytest.approx(1.0, abs=0.05)
    (idle, *rest) = flows((0, 9000), (50, 9000), *((50 + at, 9000 - at * 100) for at in (30, 60)))
    assert of([replace(idle, flows=()), *rest], 1.0).part == pytest.approx(1.0)


def test_the_pace_is_not_known_after_half_a_minute_without_a_byte() -> None:
    assert not of(flows((0, 9000), (15, 9000), (29, 9000)), 0.9).stopped
    assert of(flows((0, 9000), (15, 9000), (30, 9000)), 0.9).stopped
    assert not of(flows((0, 9000), (15, 8999), (30, 8999)), 0.9).stopped
    assert of(flows((0, 9000), (15, 8000), (30, 8000), (45, 8000)), 0.9).stopped


def test_a_broker_that_delivers_less_than_the_others_is_known_after_some_minutes() -> None:
    def between(since: int) -> FlowSample:
        at, allowed = since + 5, 5 * THROTTLE
        parts = {1: 0.9, 2: 0.9, 3: 0.45}
        copied = (
            BrokerFlow("in", broker, round(part * allowed), 1000, 1, 0, allowed)
            for broker, part in parts.items()
        )
        return FlowSample(T0 + timedelta(seconds=since), T0 + timedelta(seconds=at), tuple(copied))

    left = {Slot(Direction.IN, broker): 1000 for broker in (1, 2, 3)}
    polls = [between(since) for since in range(0, 300, 5)]
    line = trend(polls, polls[-1].at, left, THROTTLE, 0.9)
    parts = [line.part_of(slot) for slot in left]
    assert parts == [pytest.approx(0.9, abs=0.02)] * 2 + [pytest.approx(0.45, abs=0.05)]


def test_the_delivered_part_is_that_of_the_brokers_with_most_left() -> None:
    ((since, at),) = [(sample.since, sample.at) for sample in flows((0, 100), (60, 0))]
    two = (BrokerFlow("in", 1, 3000, 0, 1, 0, 6000), BrokerFlow("in", 2, 6000, 0, 1, 0, 6000))
    polls = [FlowSample(since, at, two)]
    by_left = [
        trend(polls, at, {Slot(Direction.IN, 1): one, Slot(Direction.IN, 2): other}, THROTTLE, 0.75)
        for one, other in ((1000, 10), (1000, 1000), (10, 1000))
    ]
    slow, both, fast = [line.part for line in by_left]
    assert slow < 0.55 < both < 0.95 < fast
    assert both == pytest.approx(0.75)


def test_growth_of_the_source_does_not_count_as_pace() -> None:
    (still,) = flows((0, 100), (60, 100))
    grows = replace(still, flows=(replace(still.flows[0], copied_bytes=6000, grown_bytes=6000),))
    assert of([grows], 0.9) == of([still], 0.9)
    assert of([grows], 0.9).stopped
