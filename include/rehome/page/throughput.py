"""The throttle over time: what was asked for, what was set, what brokers delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from rehome.domain.run.flows import RateChange
from rehome.domain.run.progress import PACE_WINDOW
from rehome.ledger.base.paging import BusiestRate

SMOOTHED_S = 30.0
"""Rates are means over so many seconds: single polls see single fetches."""
POINTS = 600
"""As many as a chart shows apart; more samples are averaged."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """Columns of a chart, aligned. Unix seconds, bytes per second; None = not known then.

    :param delivered: by the broker and direction that copied most.
    :param target: what brokers were to deliver.
    :param limit: what was asked for.
    """

    at: list[float]
    delivered: list[float | None]
    target: list[float | None]
    limit: list[float | None]


def throughput(samples: Sequence[BusiestRate], rates: Sequence[RateChange]) -> Throughput:
    """The chart's columns: one row for each span of samples, one at each change of rate, and one
    without a value in each gap: where nothing has polled, nothing is known.

    :param samples, rates: oldest first.
    """
    known = {each.at.timestamp(): each.busiest_bytes_per_s for each in _points(samples)}
    gaps = set(_gaps(samples))
    at = sorted({*known, *gaps, *(change.at.timestamp() for change in rates)})
    changes = [(change.at.timestamp(), change) for change in rates]
    rate_then: RateChange | None = None
    target: list[float | None] = []
    limit: list[float | None] = []
    upcoming = 0
    for moment in at:
        while upcoming < len(changes) and changes[upcoming][0] <= moment:
            rate_then = changes[upcoming][1]
            upcoming += 1
        target.append(rate_then.target_bytes_per_s if rate_then else None)
        limit.append(rate_then.limit_bytes_per_s if rate_then else None)
    return Throughput(at, _values_between(at, known, gaps), target, limit)


def _values_between(
    at: Sequence[float], known: Mapping[float, float], gaps: Set[float]
) -> list[float | None]:
    """A value for each row that lies between two that are known, with no gap between them."""
    stretches: list[list[float]] = [[]]
    for moment in sorted({*known, *gaps}):
        if moment in gaps:
            stretches.append([])
        else:
            stretches[-1].append(moment)
    found: dict[float, float] = {}
    for moments in filter(None, stretches):
        within = [moment for moment in at if moments[0] <= moment <= moments[-1]]
        values = np.interp(within, moments, [known[moment] for moment in moments])
        found |= dict(zip(within, values.tolist(), strict=True))
    return [found.get(moment) for moment in at]


def _gaps(samples: Sequence[BusiestRate]) -> Iterator[float]:
    """A moment in each time without a poll: the mean over that time says nothing of it."""
    for sample in samples:
        if sample.since is not None and sample.at - sample.since > PACE_WINDOW:
            yield (sample.since + (sample.at - sample.since) / 2).timestamp()


def _points(samples: Sequence[BusiestRate]) -> Iterator[BusiestRate]:
    """What is drawn: smoothed and averaged, over no gap."""
    polled = [s for s in samples if s.since is None or s.at - s.since <= PACE_WINDOW]
    yield from _smooth(_averages(polled))


def _smooth(samples: Sequence[BusiestRate]) -> list[BusiestRate]:
    """Each as the mean of the last half minute: single polls see single fetches."""
    found: list[BusiestRate] = []
    first, total = 0, 0.0
    within = timedelta(seconds=SMOOTHED_S)
    for at, sample in enumerate(samples):
        total += sample.busiest_bytes_per_s
        while sample.at - samples[first].at >= within:
            total -= samples[first].busiest_bytes_per_s
            first += 1
        found.append(BusiestRate(sample.at, total / (at - first + 1)))
    return found


def _averages(samples: Sequence[BusiestRate]) -> list[BusiestRate]:
    """Means of equally many samples each, at the last one's time."""
    together = -(-len(samples) // POINTS) or 1
    spans = [samples[at : at + together] for at in range(0, len(samples), together)]
    return [
        BusiestRate(span[-1].at, sum([each.busiest_bytes_per_s for each in span]) / len(span))
        for span in spans
    ]
