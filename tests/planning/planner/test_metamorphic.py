"""Changes to a cluster that must not change its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rehome.domain.kafka import TopicPartition
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import both, plan

seeds = pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]
)


def skewed(seed: int) -> Cluster:
    rng = np.random.default_rng(seed)
    racks = [f"/r{broker % 3}" for broker in range(12)]
    rows = [
        [int(rack + 3 * min(rng.integers(0, 4), rng.integers(0, 4))) for rack in rng.permutation(3)]
        for _ in range(80)
    ]
    return cluster(racks, rows, rng.lognormal(6, 1, 80).astype(int).clip(1, 2000).tolist())


def targets(of: Cluster, **params: Any) -> dict[TopicPartition, tuple[int, ...]]:
    made = plan(of, action="rebalance", **({"tolerance": 0.05} | params))
    assert made.moves
    return {move.partition: move.target for move in made.moves}


@pytest.mark.slow
@seeds
def test_sizes_a_thousand_times_as_large_give_the_same_moves(seed: int) -> None:
    of = skewed(seed)
    of = replace(of, sizes={p: of.size_of(p) * 2**20 for p in of.sizes})
    larger = replace(of, sizes={p: of.size_of(p) * 2**10 for p in of.sizes})
    assert targets(larger, move_overhead_bytes=0) == targets(of, move_overhead_bytes=0)


@pytest.mark.slow
@seeds
def test_a_topic_without_data_changes_nothing(seed: int) -> None:
    of = skewed(seed)
    idle = replace(cluster(list(of.racks.values()), [(0, 1, 2)] * 9, 0, topic="z"), racks=of.racks)
    assert targets(both(of, idle)) == targets(of)


@pytest.mark.slow
@seeds
def test_other_names_in_the_same_order_give_the_same_moves(seed: int) -> None:
    of = skewed(seed)

    def renamed(partition: TopicPartition) -> TopicPartition:
        return TopicPartition("other", partition.partition)

    other = replace(
        of,
        replicas={renamed(p): row for p, row in of.replicas.items()},
        sizes={renamed(p): size for p, size in of.sizes.items()},
    )
    assert {renamed(p): row for p, row in targets(of).items()} == targets(other)


@pytest.mark.slow
@seeds
def test_planning_on_the_result_plans_nothing(seed: int) -> None:
    of = skewed(seed)
    made = plan(of, action="rebalance", tolerance=0.05)
    assert plan(of.after(made), action="rebalance", tolerance=0.05).moves == ()


@pytest.mark.slow
@seeds
def test_a_drained_broker_that_comes_back_is_filled_and_the_cluster_is_balanced(seed: int) -> None:
    of = skewed(seed)
    drained = of.after(plan(of, action="drain", brokers=[0]))
    made = plan(drained, action="rebalance", tolerance=0.05)
    assert made.summary.infeasible == ()
    assert made.summary.brokers[0].size_bytes_after > 0
    loads = [load.size_bytes_after for load in made.summary.brokers]
    assert max(loads) <= 1.0501 * np.mean(loads)
    assert min(loads) >= 0.9499 * np.mean(loads)
