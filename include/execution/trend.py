"""The straight line through what has passed the busiest broker: its slope is the pace. Pure.

A broker may deliver nothing for some seconds and then all of it at once (its quota counts over
eleven seconds), and what a poll finds depends on that moment. What it has saved up is not lost:
so neither is one look's backlog taken for what is left, nor one look's pace for the pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

from include.execution.model import ProgressSample

WINDOW = timedelta(seconds=120)
"""The pace is measured over this time: many of the brokers' own windows (11 samples of 1 s)."""
BELIEVED_AFTER_S = 30.0
"""After so long without a byte nothing is foretold any more."""
LOOKS_STRAY_S = 3.0
"""Looks that are five seconds apart find so much more or less than has passed on average, as time
at the throttle: the standard deviation that the brokers' window and single fetches cause. One
look tells of the whole time since the one before it."""
LOOKS_APART_S = 5.0
BURST_S = 5.0
"""What has come at once in the beginning, or did not come: standard deviation, likewise."""
PART_STRAYS = 0.2
"""How far what is delivered of a throttle is from what was expected: standard deviation."""


@dataclass(frozen=True, slots=True)
class Trend:
    """What the busiest broker gets of its throttle, single looks' to and fro taken out.

    :param part: of the throttle's bytes per second.
    :param ahead_bytes: by how much the newest look is ahead of the line.
    """

    part: float
    ahead_bytes: float


def trend(samples: Sequence[ProgressSample], expected: float) -> Trend:
    """The line of the last two minutes: bytes that have passed, over what the throttle allowed.

    Each span between two samples counts at the throttle of its time, so that a change of the
    throttle changes the pace at once. Spans in which nothing was in flight do not count. A ridge
    regression: slope and beginning stray as far from what is expected as the constants above say.

    :param samples: oldest first; the newest one is now.
    :param expected: the part that is expected before anything is measured.
    :returns: a part of 0 where nothing has come for long enough to be believed.
    """
    rate = samples[-1].throttle_bytes_per_s or 0
    points = _points(samples)
    if not rate:
        return Trend(expected, 0.0)
    if points[-1].allowed >= BELIEVED_AFTER_S * rate and points[-1].passed <= 0:
        return Trend(0.0, 0.0)
    x = [point.allowed / rate for point in points]  # in seconds at the throttle of now
    y = [point.passed / rate for point in points]
    weights = [point.span_s / LOOKS_APART_S / LOOKS_STRAY_S**2 for point in points]
    slope_weight = PART_STRAYS**-2
    total = sum(weights) + BURST_S**-2
    sum_x, sum_y = _sum(weights, x), _sum(weights, y)
    wx = [weight * a for weight, a in zip(weights, x, strict=True)]
    xx, xy = _sum(wx, x) + slope_weight, _sum(wx, y) + slope_weight * expected
    slope = (xy * total - sum_x * sum_y) / (xx * total - sum_x**2)
    begin = (sum_y - slope * sum_x) / total
    return Trend(max(0.0, slope), (y[-1] - begin - slope * x[-1]) * rate)


class _Point(NamedTuple):
    """A look: bytes that the throttle had allowed by then, and that had passed."""

    allowed: float
    passed: float
    span_s: float


def _points(samples: Sequence[ProgressSample]) -> list[_Point]:
    points = [_Point(0.0, 0.0, LOOKS_APART_S)]
    for earlier, later in pairwise(samples):
        if earlier.busiest_bytes is None or later.busiest_bytes is None:
            continue
        if not earlier.in_flight or samples[-1].sampled_at - earlier.sampled_at > WINDOW:
            continue
        seconds = (later.sampled_at - earlier.sampled_at).total_seconds()
        allowed = points[-1].allowed + seconds * (earlier.throttle_bytes_per_s or 0)
        passed = points[-1].passed + earlier.busiest_bytes - later.busiest_bytes
        points.append(_Point(allowed, passed, seconds))
    return points


def _sum(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True))
