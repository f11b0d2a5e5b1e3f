"""Fewer and smaller copies: what is undone for them, and what keeps them away."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks.small_clusters import small
from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.search.fewer_copies import exchange_and_merge
from rehome.planning.search.state import Search
from tests.planning.clusters import cluster
from tests.planning.posed import PLAIN, posed

REQUEST = ReassignmentRequest(Action.REBALANCE, tolerance=0.05)


def search_of(sizes: list[int], moved: int, racks: tuple[str, ...] = ("",) * 3) -> Search:
    """Broker 0 holds all partitions, and broker 1 one of 1,000. The first ones move to broker 1."""
    rows = [*([(0,)] * len(sizes)), (1,), (2,)]
    of = cluster(list(racks), rows, [*sizes, 600, 1_000])
    search = Search(posed(ClusterArrays.from_snapshot(of.snapshot()), REQUEST))
    for replica in range(moved):
        search.move(replica, 1)
    return search


def test_one_larger_replica_moves_in_place_of_two() -> None:
    search = search_of([200, 200, 400, 600], moved=2)
    exchange_and_merge(search, search.copied_bytes())
    assert search.copies().tolist() == [2]
    assert search.outside() == 0


def test_bytes_are_not_exceeded_and_bands_are_kept() -> None:
    search = search_of([200, 200, 410, 590], moved=2)
    exchange_and_merge(search, search.copied_bytes())
    assert len(search.copies()) == 2
    exchange_and_merge(search, 1.03 * search.copied_bytes())
    assert search.copies().tolist() == [2]


def test_copies_are_undone_once_for_all_that_may_move_instead() -> None:
    search = search_of([200, 200, *[400] * 8], moved=2, racks=("a", "a", "b"))
    before = search.flat.copy(), search.load.copy()
    with (
        patch.object(search, "move", wraps=search.move) as moves,
        patch.object(search.problem.tree, "violations_of", return_value=np.ones(1)) as asked,
    ):
        exchange_and_merge(search, search.copied_bytes())
    assert asked.call_count > 1
    undone = [call.args for call in moves.call_args_list if call.args[0] < 2 and call.args[1] == 0]
    assert len(undone) < asked.call_count
    assert np.array_equal(search.flat, before[0])
    assert np.array_equal(search.load, before[1])


def test_a_replica_that_may_not_move_is_not_chosen() -> None:
    search = search_of([200, 200, 400, 600], moved=2)
    search.problem.partitions[2] = False
    exchange_and_merge(Search(search.problem), search.copied_bytes())
    assert search.rows[2].tolist() == [0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_plan_has_fewer_copies_and_breaks_nothing(seed: int) -> None:
    of = small(seed)
    request = ReassignmentRequest(
        Action.REBALANCE, tolerance=0.05, tolerances={"bytes_in": 0.1}, weights=of.weights
    )
    problem = replace(posed(of.arrays, request), parts=PLAIN)
    rebalance(problem, np.ones(len(of.rack)))
    search = Search(problem)
    before, excess, copied = len(search.copies()), search.outside(), search.copied_bytes()
    exchange_and_merge(search, 1.02 * copied)
    assert len(search.copies()) < before
    assert search.outside() <= excess
    assert search.copied_bytes() <= 1.02 * copied
    tree, rows = problem.tree, problem.layout.rows
    assert not tree.violations(rows).any()
    again = Search(problem)
    assert np.array_equal(again.load, search.load)
