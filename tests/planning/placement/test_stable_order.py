"""Stable orders that do not merge are the ones that NumPy's stable sort makes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.planning.placement.stable_order import (
    first_ones,
    parts_without_repeats,
    stable_order,
    stable_order_of_floats,
    turn,
)

NUMBERS = st.lists(st.integers(-3, 3) | st.integers(-(2**40), 2**40), max_size=50)
GROUPS = st.lists(st.integers(0, 5), max_size=50)


@pytest.mark.slow
@given(NUMBERS)
def test_equal_numbers_stay_in_their_order(numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.slow
@given(NUMBERS)
def test_equal_floats_stay_in_their_order(numbers: list[int]) -> None:
    values = np.array(numbers, float) / 3
    assert stable_order_of_floats(values).tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.slow
@given(GROUPS, st.integers(1, 3))
def test_the_first_ones_of_each_group_are_those_with_few_before_them(
    groups: list[int], count: int
) -> None:
    before = [groups[:place].count(group) for place, group in enumerate(groups)]
    of = np.array(groups, np.int64)
    assert turn(of).tolist() == before
    assert first_ones(of, count).tolist() == [number < count for number in before]


@pytest.mark.slow
@given(GROUPS)
def test_parts_without_repeats_are_as_long_as_they_can_be(groups: list[int]) -> None:
    parts = [groups[part] for part in parts_without_repeats(np.array(groups, np.int64))]
    assert [group for part in parts for group in part] == groups
    assert all(len(set(part)) == len(part) for part in parts)
    assert all(after[0] in part for part, after in itertools.pairwise(parts))
