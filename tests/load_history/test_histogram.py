"""The sketch of rates: its error is the stated one, and merging loses nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.load_history.histogram import RELATIVE_ERROR, Histogram, bin_of, rate_of
from tests.examples import examples

RATE = st.one_of(st.just(0.0), st.floats(1.0, 2e10))
TIMES = st.lists(st.tuples(RATE, st.floats(60, 1800)), min_size=1, max_size=200)


def exact(times: list[tuple[float, float]], q: float) -> float:
    """The smallest rate below or at which so much of the time was spent."""
    whole, passed = sum(seconds for _, seconds in times), 0.0
    for rate, seconds in sorted(times):
        passed += seconds
        if passed >= q * whole - 1e-6:
            return rate
    raise AssertionError(times)


def histogram(times: list[tuple[float, float]], row: int = 0, rows: int = 1) -> Histogram:
    total = Histogram.empty()
    for rate, seconds in times:
        rates = np.full(rows, np.nan)
        rates[row] = rate
        total = total.merge(Histogram.of(rates, seconds))
    return total


@given(TIMES, st.sampled_from([0.5, 0.95, 1.0]))
@examples(150)
def test_a_quantile_is_within_the_stated_error_of_the_exact_one(
    times: list[tuple[float, float]], q: float
) -> None:
    found = histogram(times).quantile(q, 1)[0]
    truth = exact(times, q)
    assert abs(found - truth) <= RELATIVE_ERROR * truth * (1 + 1e-9)


@given(
    st.lists(st.tuples(RATE, st.integers(60, 1800)), min_size=1, max_size=60), st.integers(0, 60)
)
@examples(50)
def test_parts_merged_in_any_order_are_the_whole(
    times: list[tuple[float, float]], cut: int
) -> None:
    whole = histogram(times)
    one, other = histogram(times[:cut]), histogram(times[cut:])
    for merged in (one.merge(other), other.merge(one)):
        assert np.array_equal(merged.keys, whole.keys)
        assert np.allclose(merged.seconds, whole.seconds)


def test_rows_do_not_mix_and_survive_being_moved_and_stored() -> None:
    one, other = [(1e3, 60.0), (1e6, 600.0)], [(5e2, 1180.0), (5e4, 80.0)]
    both = histogram(one, 0, 3).merge(histogram(other, 2, 3))
    p95 = both.quantile(0.95, 3)
    assert p95[0] == pytest.approx(1e6, rel=0.05)
    assert np.isnan(p95[1])
    assert p95[2] == pytest.approx(5e4, rel=0.05)
    moved = both.move_rows(np.array([1, -1, 4]))
    assert np.array_equal(moved.quantile(0.95, 5)[[1, 4]], p95[[0, 2]])
    lengths, bins, seconds = moved.to_lists(5)
    again = Histogram.from_lists(lengths, bins.astype(np.int64), seconds)
    assert np.array_equal(again.keys, moved.keys)


def test_the_rate_of_every_bin_lies_within_the_bin() -> None:
    bins = np.arange(255)
    assert np.array_equal(bin_of(rate_of(bins)), bins)
    assert bin_of(np.array([1e30]))[0] == 255
