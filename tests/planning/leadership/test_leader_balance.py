"""Leaders within their shares, in one resource and in three at once."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.array_types import Floats, Rows
from rehome.domain.kafka import TopicPartition
from rehome.planning.leadership.leader_balance import LedShares, balance_leaders_by_share
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.topic_bands import TopicBands, topic_bands, total_beyond
from tests.planning.clusters import Cluster

BROKERS = 2


def balanced(weights: Floats) -> tuple[LedShares, Floats]:
    """The shares of two equal brokers, and what they lead in the end; broker 0 led all of it.

    :param weights: (L, P) of leading each partition.
    """
    rows = {TopicPartition("t", number): (0, 1) for number in range(weights.shape[1])}
    of = Cluster({0: "", 1: ""}, rows, dict.fromkeys(rows, 100))
    layout = Layout(ClusterArrays.from_snapshot(of.snapshot()))
    share = np.repeat(weights.sum(axis=1)[:, None] / BROKERS, BROKERS, axis=1)
    shares = LedShares(weights, share, np.full(len(weights), 0.05))
    everything = np.ones(len(rows), bool)
    balance_leaders_by_share(layout, shares, everything, np.ones(BROKERS, bool))
    return shares, shares.load(layout.rows[:, 0])


@pytest.mark.parametrize("resource", [0, 1, 2])
def test_each_resource_is_brought_within_its_tolerance(resource: int) -> None:
    weights = np.zeros((3, 8))
    weights[resource] = [4_000, 3_000, 3_000, 2_000, 2_000, 1_000, 1_000, 0]
    shares, led = balanced(weights)
    assert not shares.outside(led).any()


@pytest.mark.parametrize("resources", [1, 2, 3])
def test_a_leader_change_that_helps_in_one_resource_and_hurts_in_another_is_not_made(
    resources: int,
) -> None:
    """Only the first and the last partition together are half of everything."""
    weights = np.array([[1, 1, 1, 1], [1e4, 1e4, 0, 0], [1e4, 0, 1e4, 0]])[:resources]
    shares, led = balanced(weights)
    assert not shares.outside(led).any()
    assert led[1:].tolist() == [[1e4, 1e4]] * (resources - 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("with_topics", [False, True])
def test_no_single_leader_change_is_left_that_brings_brokers_closer(
    seed: int, with_topics: bool
) -> None:
    """By trying all. A few partitions send most, so that shares are out of reach."""
    rng = np.random.default_rng(seed)
    rows = {
        TopicPartition("tuv"[number % 3], number // 3): rng.permutation(6)[:3].tolist()
        for number in range(60)
    }
    of = Cluster(dict.fromkeys(range(6), ""), rows, dict.fromkeys(rows, 100))
    layout = Layout(ClusterArrays.from_snapshot(of.snapshot()))
    weights = np.stack([np.ones(60), np.round(rng.lognormal(5, 2, 60))])
    share = np.repeat(weights.sum(axis=1)[:, None] / 6, 6, axis=1)
    shares = LedShares(weights, share, np.full(2, 0.02))
    everything, everyone = np.ones(60, bool), np.ones(6, bool)
    bands = None
    if with_topics:
        tree = RackTree(layout.arrays.brokers.rack_paths, everyone, 3)
        bands = topic_bands(
            layout,
            tree,
            partitions=everything,
            brokers=everyone,
            capacity=np.ones(6),
            tolerance=0.1,
        )
        assert bands is not None
    balance_leaders_by_share(layout, shares, everything, everyone, bands)
    now = layout.rows[:, 0].copy()
    closest = shares.beyond(shares.load(now))
    assert closest > 0
    for p, row in enumerate(layout.rows.tolist()):
        for broker in row[1:]:
            then = layout.rows.copy()
            then[p, 0] = broker
            if bands is None or _off(bands, then) <= _off(bands, layout.rows):
                assert shares.beyond(shares.load(then[:, 0])) >= closest - 1e-9


def _off(bands: TopicBands, rows: Rows) -> int:
    return total_beyond(bands.leaders(rows), bands.led_low, bands.led_high)
