"""Charts of a report where polls have stopped for a while."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from rehome.domain.run.flows import RateChange, RateReason
from rehome.reporting.charts.gaps import stretches, thin_out
from rehome.reporting.charts.progress_charts import progress_curve
from rehome.reporting.charts.rate_chart import rate_picture
from tests.reporting.reported_plans import MB, START, good_end, with_evidence

SECONDS = (*range(5, 50, 5), *range(400, 450, 5))
"""A plan that has paused between 45 s and 400 s."""


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def test_a_line_ends_where_polls_have_stopped_and_begins_anew() -> None:
    data, last = good_end(), good_end().samples[-1]
    samples = tuple(replace(last, sampled_at=at(second)) for second in SECONDS)
    curve = progress_curve(replace(data, samples=samples))
    assert curve is not None
    assert [len(line.split()) for line in curve.lines] == [10, 10]  # and the start
    assert [area.split()[-1] for area in curve.areas] == ["101.1,200.0", "1000.0,200.0"]
    rates = (RateChange(START, MB, MB, MB, RateReason.SET_UP, "set up"),)
    delivered = tuple((at(second), 1.0 * MB) for second in SECONDS)
    picture = rate_picture(
        replace(with_evidence(data, rates=rates), samples=samples, delivered=delivered)
    )
    assert picture is not None
    assert [len(line.split()) for line in picture.delivered] == [9, 10]


def test_each_stretch_keeps_its_end_when_it_is_thinned() -> None:
    found = thin_out(stretches([at(second) for second in SECONDS], lambda each: each), 5)
    assert [stretch[-1] for stretch in found] == [at(45), at(445)]
    assert sum(map(len, found)) <= 6
