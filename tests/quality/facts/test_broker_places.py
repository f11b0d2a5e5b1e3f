"""Indexes of brokers, by a table and by a search."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.quality.facts.broker_places import places

LARGE = 2**31 - 1


@pytest.mark.parametrize("highest", [7, LARGE])
def test_each_value_has_the_index_of_its_broker_and_unknown_ones_have_none(highest: int) -> None:
    ids = np.array([3, 0, highest, 5])
    values = np.array([5, highest, 0, 3, 4, -1, -2, 6, 8, LARGE - 1])
    assert places(ids, values).tolist() == [3, 2, 1, 0, -1, -1, -1, -1, -1, -1]


@pytest.mark.parametrize("highest", [7, LARGE])
def test_of_a_broker_that_is_listed_twice_the_first_place_counts(highest: int) -> None:
    assert places(np.array([1, highest, 1, highest]), np.array([highest, 1])).tolist() == [1, 0]


def test_where_no_broker_is_listed_none_is_known() -> None:
    assert places(np.zeros(0, np.int64), np.array([0, 1])).tolist() == [-1, -1]


def test_no_values_have_no_places() -> None:
    assert places(np.array([1, 2]), np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("seed", range(3))
def test_a_table_and_a_search_find_the_same(seed: int) -> None:
    random = np.random.default_rng(seed)
    ids, values = random.integers(0, 50, 20), random.integers(-3, 60, 500)
    apart = LARGE - 100
    assert places(ids, values).tolist() == places(ids + apart, values + apart).tolist()
