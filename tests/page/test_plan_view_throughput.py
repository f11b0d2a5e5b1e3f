"""The columns of the chart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rehome.domain.run.flows import RateChange, RateReason
from rehome.ledger.base.paging import BusiestRate
from rehome.page.plan_view import POINTS, throughput

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
    assert found.delivered[changed] is not None  # a change makes no gap
    assert found.target[changed - 1 : changed + 1] == [90, 45]


def test_a_time_without_polls_is_a_gap_and_no_line() -> None:
    def sample(since: int, at: int, rate: float) -> BusiestRate:
        return BusiestRate(T0 + timedelta(seconds=at), rate, T0 + timedelta(seconds=since))

    samples = [sample(0, 5, 10.0), sample(5, 10, 10.0), sample(10, 310, 2.0), sample(310, 315, 8.0)]
    found = throughput(samples, [])
    seconds = [at - T0.timestamp() for at in found.at]
    assert list(zip(seconds, found.delivered, strict=True)) == [
        (5, 10.0),
        (10, 10.0),
        (160, None),
        (315, 8.0),
    ]
