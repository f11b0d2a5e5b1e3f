"""The throttle over time: what was asked for, what was set, what brokers delivered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import itemgetter

from rehome.domain.run.flows import RateChange, RateReason
from rehome.reporting.charts.gaps import stretches, thin_out
from rehome.reporting.data import ReportData

POINTS_SHOWN = 300
_WIDTH, _HEIGHT = 1000, 200
LABEL_PERCENT = 4.0
"""What the number of a mark takes of the chart's width."""
_TONES = {
    RateReason.SET_UP: "person",
    RateReason.REQUESTED: "person",
    RateReason.STRAIN: "strain",
    RateReason.RECOVERY: "strain",
}


@dataclass(frozen=True, slots=True)
class RatePicture:
    """Lines in the coordinates of a 1000 x 200 SVG; 0 bytes per second lie at the bottom.

    :param delivered: lines of what the busiest broker delivered, over about half a minute each: one
        ends where polls have stopped.
    :param target: corners of what it was to deliver.
    :param nominal: corners of the nominal rate.
    :param span_s: seconds from the left edge to the right.
    :param top_bytes_per_s: from the bottom to the top.
    :param marks: the changes, in their order.
    """

    delivered: tuple[str, ...]
    target: str
    nominal: str
    span_s: float
    top_bytes_per_s: float
    marks: tuple[RateMark, ...]


@dataclass(frozen=True, slots=True)
class RateMark:
    """Where a rate was changed, and why: its number is that of the line in the table.

    :param x: from 0 at the left edge to 1000; ``percent``: the same of 100.
    :param tone: ``strain``, ``person`` or ``governor``: what brought the change about.
    :param labelled: whether its number fits below the chart.
    """

    number: int
    x: float
    percent: float
    tone: str
    labelled: bool


def rate_picture(data: ReportData) -> RatePicture | None:
    """What was set and what was delivered; None with fewer than two samples."""
    rates, lines = data.account.rates, _smooth(data.delivered)
    delivered = list(chain.from_iterable(lines))
    if not rates or len(delivered) < 2:
        return None
    begin, end = rates[0].at, max(delivered[-1][0], rates[-1].at)
    span_s = (end - begin).total_seconds()
    top = 1.1 * max(*(rate.rate_bytes_per_s for rate in rates), *(rate for _, rate in delivered), 1)
    if span_s <= 0:
        return None

    def point(at: datetime, rate: float) -> str:
        x = max(0.0, (at - begin).total_seconds() / span_s)
        return f"{_WIDTH * x:.1f},{_HEIGHT * (1 - rate / top):.1f}"

    def corners(values: Sequence[int]) -> str:
        changes = [*(rate.at for rate in rates), end]
        spans = zip(changes, changes[1:], values, strict=False)
        return " ".join(f"{point(a, rate)} {point(b, rate)}" for a, b, rate in spans)

    return RatePicture(
        delivered=tuple(" ".join(point(at, rate) for at, rate in line) for line in lines),
        target=corners([rate.target_bytes_per_s for rate in rates]),
        nominal=corners([rate.rate_bytes_per_s for rate in rates]),
        span_s=span_s,
        top_bytes_per_s=top,
        marks=tuple(_marks(rates, begin, span_s)),
    )


def _marks(rates: Sequence[RateChange], begin: datetime, span_s: float) -> Iterator[RateMark]:
    """What the governor does every few seconds has a mark only where a label fits."""
    last = -LABEL_PERCENT
    for number, change in enumerate(rates, start=1):
        percent = 100 * (change.at - begin).total_seconds() / span_s
        tone = _TONES.get(change.reason, "governor")
        labelled = percent - last >= LABEL_PERCENT
        if not labelled and tone == "governor":
            continue
        last = percent if labelled else last
        yield RateMark(number, _WIDTH * percent / 100, percent, tone, labelled)


def _smooth(delivered: Sequence[tuple[datetime, float]]) -> list[list[tuple[datetime, float]]]:
    """Means of half a minute each, and at most some hundred: single polls see single fetches."""
    lines = []
    for line in thin_out(stretches(delivered, itemgetter(0)), POINTS_SHOWN):
        means = []
        for at, _ in line:
            near = [r for t, r in delivered if -30 < (t - at).total_seconds() <= 0]
            means.append((at, sum(near) / len(near)))
        lines.append(means)
    return lines


def change_text(change: RateChange) -> str:
    """Why a rate was set, in one line."""
    return change.cause if change.cause == change.reason else f"{change.reason}: {change.cause}"
