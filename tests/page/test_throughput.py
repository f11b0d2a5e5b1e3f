"""The columns of the chart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from include.domain.run.flows import RateChange, RateReason
from include.ledger.base.paging import BusiestRate
from include.page.throughput import POINTS, throughput

T0 = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_charts_columns_hold_every_change_and_no_more_points_than_are_seen() -> None:
    samples = [BusiestRate(T0 + timedelta(seconds=s), float(s)) for s in range(1, 6001)]
    rates = [
        RateChange(T0, 100, 90, 100, RateReason.SET_UP, "set up"),
        RateChange(T0 + timedelta(seconds=3000.5), 50, 45, 100, RateReason.STRAIN, "suffers"),
    ]
    found = throughput(samples, rates)
    assert found.at == sorted(found.at)
    assert len(found.at) == len(found.delivered) == len(found.target) == len(found.limit)
    assert len(found.at) <= POINTS + len(rates)
    assert (found.delivered[0], found.target[0], found.limit[0]) == (None, 90, 100)
    assert (found.delivered[-1], found.target[-1]) == (
        5985.5,
        45,
    )  # of the last half minute
    changed = found.at.index(rates[1].at.timestamp())
    assert found.target[changed - 1 : changed + 1] == [90, 45]
