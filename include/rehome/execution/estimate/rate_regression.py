"""What part of the throttle brokers deliver: the slope of a straight line. Pure.

A broker may deliver nothing for some seconds and then all of it at once (its quota counts over
eleven seconds), and what a poll finds depends on that moment. Quota that it has not used is used
later. So neither the backlog of a single poll counts as lost, nor the rate of a single poll as its
rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import nlargest

import numpy as np

from rehome.domain.array_types import Floats
from rehome.domain.broker_rates import RateKey
from rehome.domain.run.flows import FlowSample
from rehome.execution.admission.slots import Slot

COMMON_WINDOW = timedelta(seconds=120)
"""What all deliver is measured over this time: many of the brokers' own windows (11 x 1 s)."""
OWN_WINDOW = timedelta(seconds=300)
"""By how much a broker differs from the others, over this."""
BELIEVED_AFTER_S = 30.0
"""After so long without a byte nothing is predicted any more."""
POLLS_STRAY_S, OWN_POLLS_STRAY_S = 2.0, 10.0
"""Polls that are five seconds apart find so much more or less than has passed on average, as time
at the throttle: the standard deviation that the brokers' window and single fetches cause; the
second one of a single broker, which for a minute may get less than its share because of how the
others' quotas fall. One poll covers the whole time since the one before it."""
LOOKS_APART_S = 5.0
BROKERS_MEASURED = 100
"""Only so many are looked at, those with most left: the others' end comes before theirs."""
BURST_STRAYS_S = 5.0
"""What has come at once in the beginning, or did not come: standard deviation, likewise."""
PART_STRAYS, OWN_PART_STRAYS = 0.2, 0.2
"""How far what is delivered of a throttle is from what was expected, and a broker's part from that
of all: standard deviations."""
LEAST_PART = 0.1
"""No broker is assumed to deliver less than this of what was expected, or of what the others do."""


@dataclass(frozen=True, slots=True)
class Trend:
    """What brokers deliver of the throttle, without the noise of single polls.

    :param throttle_bytes_per_s: nominal rate per broker and direction.
    :param part: of the throttle, on average.
    :param ahead_s: by how much the newest poll is ahead of the line, as time at the throttle.
    :param own: the parts of single brokers, by direction, where something is known of them.
    :param stopped: nothing was copied for so long that it is not known when it will go on.
    :param rates: nominal rates of brokers that have one of their own, by direction.
    """

    throttle_bytes_per_s: int
    part: float
    ahead_s: float = 0.0
    own: Mapping[Slot, float] = field(default_factory=dict)
    stopped: bool = False
    rates: Mapping[RateKey, int] = field(default_factory=dict)

    def part_of(self, slot: Slot) -> float:
        """The part that a broker delivers in a direction."""
        return self.own.get(slot, self.part)

    def bytes_per_s(self, slot: Slot) -> float:
        """What it delivers."""
        rate = self.throttle_bytes_per_s
        if self.rates:
            rate = self.rates.get((slot.direction.value, slot.broker), rate)
        return self.part_of(slot) * rate


def trend(
    flows: Sequence[FlowSample],
    now: datetime,
    left_bytes: Mapping[Slot, int],
    throttle_bytes_per_s: int,
    expected: float,
    rates: Mapping[RateKey, int] | None = None,
) -> Trend:
    """The lines of the last minutes: bytes that have passed, over what the throttle allowed.

    Each span between two polls counts at the throttle of its time, so that a change of the
    throttle changes the pace at once; and only what the other ends of a broker's copies left to
    it counts as allowed. Ridge regressions: slope and beginning stray as far from what is
    expected as the constants above say.

    :param flows: what was copied between polls, oldest first.
    :param left_bytes: bytes left by slot: the broker with most of them decides when the plan ends,
        and counts most, by the square.
    :param expected: the part that is expected before anything is measured.
    :param rates: of brokers that have one of their own.
    """
    own_rates = rates or {}
    busiest = nlargest(
        BROKERS_MEASURED, left_bytes.items(), key=lambda item: (item[1], item[0].rank)
    )
    polls = _Window.of(flows, now, [slot for slot, _ in busiest], throttle_bytes_per_s, own_rates)
    weights = np.array([size for _, size in busiest], np.float64) ** 2
    recent = polls.since(COMMON_WINDOW)
    allowed, passed = recent.mean(weights)
    line = _line(allowed, passed, recent.seconds, POLLS_STRAY_S, expected, PART_STRAYS)
    part = max(LEAST_PART * expected, float(line.slope[0]))
    longer = polls.since(OWN_WINDOW)
    single = _line(
        longer.allowed_s,
        longer.passed_s,
        longer.seconds,
        OWN_POLLS_STRAY_S,
        part,
        OWN_PART_STRAYS,
    )
    slopes = np.maximum(single.slope, LEAST_PART * part).tolist()
    return Trend(
        throttle_bytes_per_s,
        part,
        float(line.ahead_s[0]),
        dict(zip(polls.slots, slopes, strict=True)),
        stopped=_is_stopped(allowed, passed),
        rates=own_rates,
    )


def _is_stopped(allowed_s: Floats, passed_s: Floats) -> bool:
    """Whether nothing has come in the newest spans that make up the time which is believed."""
    newest = np.cumsum(allowed_s[::-1])
    spans = int(np.searchsorted(newest, BELIEVED_AFTER_S - 1e-9)) + 1
    return spans <= len(newest) and bool(passed_s[::-1][:spans].sum() <= 0)


@dataclass(frozen=True, slots=True)
class _Window:
    """What passed between polls, as time at the throttle of now.

    :param slots: whose: the columns.
    :param seconds: of each span: the rows; ``ago_s``: how long ago it began.
    :param allowed_s: by span and slot; 0 where nothing was in flight.
    :param passed_s: likewise.
    """

    slots: Sequence[Slot]
    seconds: Floats
    ago_s: Floats
    allowed_s: Floats
    passed_s: Floats

    @classmethod
    def of(
        cls,
        flows: Sequence[FlowSample],
        now: datetime,
        slots: Sequence[Slot],
        throttle_bytes_per_s: int,
        rates: Mapping[RateKey, int],
    ) -> _Window:
        columns = {(slot.direction.value, slot.broker): column for column, slot in enumerate(slots)}
        allowed, passed = (np.zeros((len(flows), len(slots))) for _ in range(2))
        for row, sample in enumerate(flows):
            for flow in sample.flows:
                column = columns.get((flow.direction, flow.broker))
                if column is not None and flow.allowed_bytes > 0:
                    rate = rates.get((flow.direction, flow.broker), throttle_bytes_per_s)
                    allowed[row, column] = flow.allowed_bytes / rate
                    copied = flow.copied_bytes - flow.grown_bytes
                    passed[row, column] = copied / rate
        seconds = np.array([sample.seconds for sample in flows])
        ago_s = [(now - sample.since).total_seconds() for sample in flows]
        return cls(slots, seconds, np.array(ago_s), allowed, passed)

    def since(self, window: timedelta) -> _Window:
        """Those spans that began within this time."""
        kept = self.ago_s <= window.total_seconds()
        return _Window(
            self.slots,
            self.seconds[kept],
            self.ago_s[kept],
            self.allowed_s[kept],
            self.passed_s[kept],
        )

    def mean(self, weights: Floats) -> tuple[Floats, Floats]:
        """Allowed and passed by span, over the slots that had something in flight: one column."""
        counted = (self.allowed_s > 0) * weights
        total = np.maximum(counted.sum(axis=1), 1e-9)
        allowed, passed = (
            (counted * cells).sum(axis=1) / total for cells in (self.allowed_s, self.passed_s)
        )
        return allowed[:, np.newaxis], passed[:, np.newaxis]


@dataclass(frozen=True, slots=True)
class _Line:
    """Lines, one per column: their slopes, and by how much the newest point is above each."""

    slope: Floats
    ahead_s: Floats


def _line(
    allowed_s: Floats,
    passed_s: Floats,
    seconds: Floats,
    looks_stray_s: float,
    expected: float,
    strays: float,
) -> _Line:
    """The ridge regression of what had passed at each poll on what had been allowed by then."""
    origin = np.zeros((1, allowed_s.shape[1]))
    x, y = (np.vstack([origin, np.cumsum(s, axis=0)]) for s in (allowed_s, passed_s))
    counted = np.vstack([origin + LOOKS_APART_S, (allowed_s > 0) * seconds[:, np.newaxis]])
    weights = counted / LOOKS_APART_S / looks_stray_s**2
    total = weights.sum(axis=0) + BURST_STRAYS_S**-2
    sum_x, sum_y = (weights * x).sum(axis=0), (weights * y).sum(axis=0)
    xx = (weights * x * x).sum(axis=0) + strays**-2
    xy = (weights * x * y).sum(axis=0) + expected * strays**-2
    slope = (xy * total - sum_x * sum_y) / (xx * total - sum_x**2)
    begin = (sum_y - slope * sum_x) / total
    return _Line(slope, y[-1] - begin - slope * x[-1])
