"""Leaders that change one by one, the change that brings brokers closest first."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Floats, Ints, Rows
from rehome.domain.kafka import TopicPartition
from rehome.planning.leadership.leader_balance import LedShares
from rehome.planning.leadership.single_changes import MOST_CHANGES, change_single_leaders
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from tests.planning.clusters import Cluster


def led_after(weights: list[float], able: bool = True) -> list[list[float]]:
    """What two equal brokers lead in the end; broker 0 led all of it.

    :param able: whether broker 1 may lead.
    """
    rows = {TopicPartition("t", number): (0, 1) for number in range(len(weights))}
    of = Cluster({0: "", 1: ""}, rows, dict.fromkeys(rows, 100))
    layout = Layout(ClusterArrays.from_snapshot(of.snapshot()))
    share = np.full((1, 2), sum(weights) / 2)
    shares = LedShares(np.array([weights]), share, np.array([0.05]))
    everything = np.arange(len(weights))
    may_lead = np.full((len(weights), 2), able)
    change_single_leaders(layout.rows, everything, may_lead, shares, None)
    assert np.sort(layout.rows, axis=1).tolist() == [[0, 1]] * len(weights)
    led: list[list[float]] = shares.load(layout.rows[:, 0]).tolist()
    return led


def test_changes_are_made_as_long_as_they_bring_brokers_closer() -> None:
    assert led_after([100, 900, 1_100, 300]) == [[1_200, 1_200]]
    assert led_after([5_000, 1_000]) == [[1_000, 5_000]]


def test_who_may_not_lead_does_not() -> None:
    assert led_after([100, 900, 1_100, 300], able=False) == [[2_400, 0]]


def test_there_is_an_end_to_it() -> None:
    weights = [100.0] * (3 * MOST_CHANGES)
    assert led_after(weights) == [[200 * MOST_CHANGES, 100 * MOST_CHANGES]]


class Counted:
    """Shares that count how many brokers they score."""

    def __init__(self, shares: LedShares) -> None:
        self._shares, self.weights, self.scored = shares, shares.weights, 0

    def load(self, leaders: Rows) -> Floats:
        return self._shares.load(leaders)

    def beyond_by(self, brokers: Ints | Rows, load: Floats) -> Floats:
        self.scored += brokers.size
        return self._shares.beyond_by(brokers, load)


def test_a_change_scores_only_what_its_two_brokers_hold() -> None:
    brokers, each = 40, 50
    first = np.repeat(np.arange(brokers), each)
    rows = np.stack([first, (first + 1 + np.arange(len(first)) % 7) % brokers], axis=1)
    share = np.full((1, brokers), 20.0)
    shares = Counted(LedShares(np.ones((1, len(first))), share, np.array([0.05])))
    able = np.ones(rows.shape, bool)
    change_single_leaders(rows.astype(np.int32), np.arange(len(rows)), able, shares, None)
    all_of_them_each_time = MOST_CHANGES * rows.size
    assert rows.size < shares.scored < all_of_them_each_time / 4
