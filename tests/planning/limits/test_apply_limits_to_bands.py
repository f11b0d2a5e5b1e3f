"""What caps make of the bands that a rebalance aims at."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.domain.resources import PLACED, Resource
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.rebalance.problem import problem_of
from rehome.planning.result.outcome import tree_of
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import plan

REPLICAS = PLACED.index(Resource.REPLICAS)


def skewed() -> Cluster:
    rng = np.random.default_rng(5)
    rows = [tuple(rng.permutation(4)[:2].tolist()) for _ in range(60)]
    return cluster([""] * 6, rows, rng.integers(1, 1000, 60).tolist())


def highest(cap: int) -> list[float]:
    request = parse_request({"action": "rebalance", "caps": {"default": {"replicas": cap}}})
    arrays = apply_limits(ClusterArrays.from_snapshot(skewed().snapshot()), request.caps, ())
    every, hosts = np.ones(60, bool), arrays.brokers.live
    problem = problem_of(
        Layout(arrays),
        tree_of(arrays, hosts, request),
        request,
        partitions=every,
        brokers=hosts,
        capacity=np.ones(6),
    )
    high: list[float] = problem.targets.high[REPLICAS].tolist()
    return high


def test_once_a_broker_is_above_its_cap_the_search_knows_the_room_of_all() -> None:
    assert highest(25) == [25] * 6


def test_caps_that_no_broker_exceeds_are_no_bands() -> None:
    assert highest(40) == [np.inf] * 6


@pytest.mark.slow
def test_a_cap_that_no_plan_could_reach_leaves_the_plan_as_it_is() -> None:
    of = skewed()
    free = plan(of, action="rebalance")
    capped = plan(of, action="rebalance", caps={"default": {"replicas": 60, "leaders": 60}})
    assert [move.target for move in capped.moves] == [move.target for move in free.moves]
