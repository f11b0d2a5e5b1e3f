"""The throttle over time: what was asked for, what was set, what brokers delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from include.domain.run.flows import RateChange
from include.ledger.base.paging import BusiestRate
from include.page.brokers import SMOOTHED_S

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
    """The chart's columns: one row for each span of samples, and one at each change of rate.

    :param samples, rates: oldest first.
    """
    rows: dict[float, float | None] = {change.at.timestamp(): None for change in rates}
    rows |= {at.timestamp(): rate for at, rate in _smoothed(_averaged(samples))}
    at = sorted(rows)
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
    return Throughput(at, [rows[moment] for moment in at], target, limit)


def _smoothed(samples: Sequence[BusiestRate]) -> list[BusiestRate]:
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


def _averaged(samples: Sequence[BusiestRate]) -> list[BusiestRate]:
    """Means of equally many samples each, at the last one's time."""
    together = -(-len(samples) // POINTS) or 1
    spans = [samples[at : at + together] for at in range(0, len(samples), together)]
    return [BusiestRate(span[-1].at, sum([rate for _, rate in span]) / len(span)) for span in spans]
