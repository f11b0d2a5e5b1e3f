"""The fewest replicas that any plan moves, against all plans there are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from benchmarks.people_clusters import cases, people
from rehome.domain.actions import Action
from rehome.domain.array_types import NONE
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.rebalance.rebalance import plan_rebalance
from rehome.planning.result.moves_bound import moves_bound
from rehome.planning.search.state import Problem
from tests.planning.clusters import cluster
from tests.planning.posed import posed

CASES = {case.name: case for case in cases()}
FEW = ("3 + 1", "6 + 3", "8 brokers, rf 2", "giant 1.3", "racks 2 2 1", "many small topics")


def problem(sizes: list[int]) -> Problem:
    """Three brokers, all replicas on the first one."""
    of = cluster([""] * 3, [(0,)] * len(sizes), sizes=sizes)
    arrays = ClusterArrays.from_snapshot(of.snapshot())
    return posed(arrays, ReassignmentRequest(Action.REBALANCE, tolerance=0.3))


@pytest.mark.parametrize("seed", range(6))
def test_no_layout_within_the_bands_moves_fewer_replicas(seed: int) -> None:
    sizes = np.random.default_rng(seed).integers(5, 30, 6).tolist()
    of = problem(sizes)
    fewest = None
    for row in product(range(3), repeat=6):
        load = np.bincount(row, sizes, 3)
        moved = sum(broker != 0 for broker in row)
        if ((load >= of.targets.low[0]) & (load <= of.targets.high[0])).all():
            fewest = moved if fewest is None else min(fewest, moved)
    assert fewest is not None
    of.layout.rows[:, 0] = _any_inside(of, sizes)
    of.layout.refresh()
    assert 0 < moves_bound(of) <= fewest


def _any_inside(of: Problem, sizes: list[int]) -> list[int]:
    for row in product(range(3), repeat=len(sizes)):
        load = np.bincount(row, sizes, 3)
        if ((load >= of.targets.low[0]) & (load <= of.targets.high[0])).all():
            return list(row)
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_a_plan_moves_at_least_that_many(name: str) -> None:
    case = CASES[name]
    outcome = plan_rebalance(people(case), ReassignmentRequest(Action.REBALANCE))
    layout = outcome.layout
    copies = int((is_new(layout.rows, layout.origin) & (layout.rows != NONE)).sum())
    assert outcome.lower_bound_moves is not None
    assert outcome.lower_bound_moves <= copies


@pytest.mark.slow
def test_equal_replicas_need_what_the_new_broker_lacks() -> None:
    outcome = plan_rebalance(people(CASES["3 + 1"]), ReassignmentRequest(Action.REBALANCE))
    assert outcome.lower_bound_moves == 89
