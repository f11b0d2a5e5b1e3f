"""Which numbers are halved and doubled, and that nothing of it stays."""

from __future__ import annotations

import pytest

from benchmarks.people_clusters import cases
from benchmarks.planning.sensitivity import Number, compared, figures, numbers, scaled
from rehome.planning.programs import fewest_moves


def number(name: str) -> Number:
    return next(of for of in numbers() if of.name == name)


def test_constants_and_fields_of_options_are_found_once() -> None:
    names = [of.name for of in numbers()]
    assert len(names) == len(set(names))
    assert "programs/fewest_moves.FEWEST_MOVES.candidates" in names
    assert not [name for name in names if name.endswith("_ROW")]


@pytest.mark.parametrize(
    ("value", "half", "double"),
    [(8, 4, 16), (1, 1, 2), (0.6, 0.3, 1.0), (1.1, 1.05, 1.2), ((0.1, 3), (0.05, 2), (0.2, 6))],
)
def test_a_number_stays_what_it_is_for(value: object, half: object, double: object) -> None:
    assert scaled(value, 0.5) == pytest.approx(half)
    assert scaled(value, 2.0) == pytest.approx(double)


def test_a_number_is_scaled_where_it_is_used_and_set_back() -> None:
    before = fewest_moves.FEWEST_MOVES
    with number("programs/fewest_moves.FEWEST_MOVES.candidates").times(2.0):
        assert fewest_moves.FEWEST_MOVES.candidates == 2 * before.candidates
    assert fewest_moves.FEWEST_MOVES is before


def test_plans_with_other_numbers_are_compared_with_the_usual_ones() -> None:
    """Without fewer copies in small clusters, more replicas move."""
    chosen = [case for case in cases() if case.name == "5 + 1, rf 2"]
    usual = figures(chosen)
    assert compared(usual, figures(chosen))["differ"] == 0
    assert usual[0].moves > 0
    with number("programs/fewest_moves.FEWEST_MOVES.candidates").times(0.01):
        found = compared(usual, figures(chosen))
    assert found["moves"] >= 1
