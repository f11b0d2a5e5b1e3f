"""What the gate lets a move do to the racks of its partition."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.facts.rack_spread import badly_placed
from rehome.quality.plan.move_table import moves_table_with_facts
from tests.planning.clusters import cluster
from tests.quality.plan.cases import planned, with_moves
from tests.quality.plan.checked_plans import move


@pytest.mark.parametrize(("target", "may"), [((0, 2, 3), True), ((0, 1, 3), False)])
def test_a_lower_factor_crowds_no_rack_within_a_rack(target: tuple[int, ...], may: bool) -> None:
    """One replica fewer is no reason for two others to share a rack."""
    before = (0, 2, 3, 1)
    of = cluster(["/a/x", "/a/x", "/a/y", "/b/z"], [before], topic="payments")
    request = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=3)
    checked = with_moves(planned(of.snapshot(), request), [move(0, before, target)])
    (row,) = moves_table_with_facts(checked).to_pylist()
    assert (row["badly_after_2"] <= row["badly_at_most_2"]) == may


@pytest.mark.parametrize(("row", "badly"), [((0, 1), 1), ((0, 1, 2), 1), ((0, 1, 4), 0)])
def test_no_more_are_badly_placed_than_have_a_place_elsewhere(
    row: tuple[int, ...], badly: int
) -> None:
    """Four brokers are in one rack, and one in another."""
    assert badly_in([4, 1], row) == badly


def badly_in(brokers: list[int], row: tuple[int, ...]) -> int:
    """Badly placed replicas in racks of so many brokers."""
    paths = [(f"r{rack}",) for rack, count in enumerate(brokers) for _ in range(count)]
    (level,) = badly_placed(paths, np.ones(len(paths), bool), np.array([row], np.int32))
    return int(level[0])


def moves_until_even(brokers: list[int], row: tuple[int, ...]) -> int:
    """Replicas that go from the fullest rack to the emptiest with a free broker, one by one."""
    rack = [number for number, count in enumerate(brokers) for _ in range(count)]
    held = [sum(rack[broker] == number for broker in row) for number in range(len(brokers))]
    for moves in range(len(row) + 1):
        least = min(
            (n for n, count in zip(held, brokers, strict=True) if n < count), default=len(row)
        )
        if max(held) - least < 2:
            return moves
        to = next(r for r, n in enumerate(held) if n == least and n < brokers[r])
        held[held.index(max(held))] -= 1
        held[to] += 1
    raise AssertionError(held)


def test_as_many_are_badly_placed_as_have_to_move() -> None:
    rng = Random(161)
    for _ in range(2_000):
        brokers = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
        row = tuple(rng.sample(range(sum(brokers)), rng.randint(1, min(7, sum(brokers)))))
        assert badly_in(brokers, row) == moves_until_even(brokers, row), (brokers, row)


def test_a_move_into_a_fuller_rack_counts_as_worse() -> None:
    """Racks of 1, 1, 2 and 3 brokers hold 0, 1, 1 and 3 replicas, then 0, 0, 2 and 3."""
    assert badly_in([1, 1, 2, 3], (1, 2, 4, 5, 6)) == 1
    assert badly_in([1, 1, 2, 3], (3, 2, 4, 5, 6)) == 2
