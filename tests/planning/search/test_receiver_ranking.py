"""Which broker comes next when brokers are filled one replica at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.planning.search.receiver_ranking import ReceiverRanking
from tests.examples import examples

VALUE = (1.0, 0.03, 0.16)
PICKY = 0.1


def filled(load: np.ndarray, scale: np.ndarray) -> ReceiverRanking:
    """Brokers that are wanted to hold 100 of each resource, at first up to 110, at most 120."""
    wanted = np.full(load.shape, 100.0)
    return ReceiverRanking(
        load=load,
        wanted_load=wanted,
        tight=wanted + 10,
        high=wanted + 20,
        scale=scale,
        value=VALUE,
        picky=PICKY,
        favour=np.ones(load.shape[1]),
    )


def test_a_broker_that_lacks_more_gains_more() -> None:
    ranking = filled(np.array([[90.0, 20.0, 60.0]] * 3), np.full((3, 3), 0.01))
    assert np.argsort(-ranking.gain([5.0, 1.0, 5.0])).tolist() == [1, 2, 0]


def test_resources_without_a_band_are_left_out() -> None:
    scale = np.full((3, 2), 0.01)
    scale[1:] = 0
    ranking = filled(np.array([[50.0, 60.0], [0.0, 0.0], [0.0, 0.0]]), scale)
    assert ranking.rows.tolist() == [0]
    assert ranking.gain([5.0]).argmax() == 0


@pytest.mark.parametrize(("held", "fits"), [(105.0, (True, True)), (106.0, (False, True))])
def test_a_broker_is_filled_up_to_its_tight_limit_before_its_highest(
    held: float, fits: tuple[bool, bool]
) -> None:
    ranking = filled(np.full((3, 1), held), np.full((3, 1), 0.01))
    weight = [5.0, 1.0, 5.0]
    found = tuple(
        bool(ranking.fits(headroom, weight)[0]) for headroom in (ranking.tight, ranking.high)
    )
    assert found == fits


@examples(40)
@given(seed=st.integers(0, 10_000), banded=st.sampled_from([(0,), (0, 2), (0, 1, 2)]))
def test_books_that_were_kept_are_those_of_what_brokers_hold_now(
    seed: int, banded: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(seed)
    load = rng.integers(0, 130, (3, 5)).astype(float)
    scale = np.zeros((3, 5))
    scale[list(banded)] = 0.01
    ranking = filled(load.copy(), scale)
    for _ in range(6):
        place, weight = int(rng.integers(0, 5)), rng.integers(0, 20, 3).astype(float)
        ranking.add(place, weight[list(banded)].tolist())
        load[:, place] += weight
    again, one = filled(load, scale), [3.0] * len(banded)
    np.testing.assert_allclose(ranking.gain(one), again.gain(one))
    for kept, counted in ((ranking.tight, again.tight), (ranking.high, again.high)):
        np.testing.assert_allclose(kept, counted)
