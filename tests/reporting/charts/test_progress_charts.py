"""Pictures of a plan's progress: brokers before and after, and what was copied over time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from rehome.reporting.charts.progress_charts import BROKERS_DRAWN, broker_picture, progress_curve
from tests.reporting.reported_plans import MB, START, dry_run_only, good_end, moves, plan_of


def test_only_brokers_that_change_are_drawn_if_there_are_many() -> None:
    load = plan_of(*moves()).summary.brokers[0]
    idle = [replace(load, broker=number) for number in range(100, 300)]
    busy = replace(load, broker=299, bytes_in=MB, size_bytes_after=151 * MB)
    picture = broker_picture([*idle[:-1], busy])
    assert len(picture.bars) == BROKERS_DRAWN
    assert picture.left_out == 200 - BROKERS_DRAWN
    assert picture.bars[-1].load == busy
    assert picture.bars[-1].after_percent == 100


def test_the_curve_runs_from_start_to_the_last_sample_along_with_the_prediction() -> None:
    curve = progress_curve(good_end())
    assert curve is not None
    (line,) = curve.lines
    assert line.startswith("0.0,200.0 ")
    assert line.endswith(" 800.0,0.0")
    assert curve.predicted == "0.0,200.0 704.0,0.0 1000.0,0.0"
    assert progress_curve(dry_run_only()) is None


def test_a_curve_of_many_samples_is_thinned_and_keeps_its_end() -> None:
    data = good_end()
    last = data.samples[-1]
    many = tuple(
        replace(last, sampled_at=START + timedelta(seconds=n), bytes_done=n * 1000)
        for n in range(1, 5001)
    )
    curve = progress_curve(replace(data, samples=many))
    assert curve is not None
    (line,) = curve.lines
    assert 200 < len(line.split()) < 400
    assert line.split()[-1] == f"1000.0,{200 * (1 - 5_000_000 / (150 * MB)):.1f}"
