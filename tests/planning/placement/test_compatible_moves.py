"""Moves chosen together take no broker out of a band, and are left out for a reason only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rehome.planning.placement.compatible_moves import compatible
from tests.examples import examples

BROKERS = 4
WHOLE = st.integers(0, 9)

Drawn = tuple[list[tuple[int, int, int]], list[int], list[int], list[int]]
"""Moves; the brokers' loads, and the least and most of their bands."""


def kept(
    moves: Sequence[tuple[int, int, int]],
    load: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
) -> list[bool]:
    """Which (source, target, weight) moves are kept, of one resource."""
    source, target, weight = (np.array(of) for of in zip(*moves, strict=True))
    bands = (np.array([of], float) for of in (load, low, high))
    made: list[bool] = compatible(source, target, weight[None].astype(float), *bands).tolist()
    return made


def test_moves_that_fit_together_are_all_made() -> None:
    assert kept([(0, 1, 2), (1, 2, 2)], [6, 4, 2], [4] * 3, [4] * 3) == [True, True]


def test_the_heaviest_move_into_a_broker_that_would_be_too_full_is_left_out() -> None:
    assert kept([(0, 1, 1), (0, 1, 5)], [9, 0], [0, 0], [9, 4]) == [True, False]


def test_the_heaviest_move_from_a_broker_that_would_be_too_empty_is_left_out() -> None:
    assert kept([(0, 1, 5), (0, 1, 1)], [6, 0], [3, 0], [9, 9]) == [False, True]


def test_a_move_that_needed_another_is_left_out_with_it() -> None:
    moves = [(1, 2, 3), (0, 1, 3)]
    assert kept(moves, [5, 5, 5], [0, 0, 0], [5, 5, 9]) == [True, True]
    assert kept(moves, [5, 5, 5], [0, 0, 0], [5, 5, 5]) == [False, False]


def test_a_giver_is_judged_by_what_is_left_of_its_moves() -> None:
    """Of two moves from broker 0 one is left out for broker 1: the other is harmless then."""
    moves = [(0, 1, 3), (0, 2, 5)]
    assert kept(moves, [9, 0, 0], [4, 0, 0], [9, 2, 9]) == [False, True]


@st.composite
def several_moves(draw: st.DrawFn) -> Drawn:
    pair = st.permutations(range(BROKERS)).map(lambda order: order[:2])
    moves = draw(st.lists(st.tuples(pair, WHOLE), min_size=1, max_size=12))
    ends = [sorted(draw(st.tuples(WHOLE, WHOLE))) for _ in range(BROKERS)]
    load = draw(st.lists(st.integers(0, 20), min_size=BROKERS, max_size=BROKERS))
    low, high = [least for least, _ in ends], [most for _, most in ends]
    return [(source, target, weight) for (source, target), weight in moves], load, low, high


@examples(200)
@given(several_moves())
def test_no_broker_is_taken_out_of_its_band_or_further_out(
    drawn: Drawn,
) -> None:
    moves, load, low, high = drawn
    after = list(load)
    for (source, target, weight), made in zip(moves, kept(*drawn), strict=True):
        if made:
            after[source] -= weight
            after[target] += weight
    for now, then, least, most in zip(load, after, low, high, strict=True):
        assert min(least, now) <= then <= max(most, now)
