"""Filling brokers: what comes back where no broker was found for it."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.search import fill as filling
from rehome.planning.search.broker_shed import BYTES_ROW
from rehome.planning.search.fill import TRIED_ALONE, fill
from rehome.planning.search.state import Search
from tests.planning.clusters import cluster
from tests.planning.planned import plan
from tests.planning.posed import posed

SPREADS_TOPICS = True  # see conftest


def test_replicas_that_came_meanwhile_make_room_for_one_that_comes_back() -> None:
    everywhere, single = (0, 1, 2), [(0,), (0,), (0,), (1,)]
    of = cluster([""] * 3, [everywhere, *single], sizes=[10, 10, 10, 10, 20])
    arrays = ClusterArrays.from_snapshot(of.snapshot())
    search = Search(posed(arrays, ReassignmentRequest(Action.REBALANCE, tolerance=0.001)))
    counts = search.topic_counts
    assert counts is not None
    assert counts.replicas[0] == counts.high[0] == 4
    wanted = search.load.copy()
    wanted[BYTES_ROW, 0] += 15
    both = np.array([0, 4 * search.width])
    assert search.flat[both].tolist() == [0, 1]
    fill(search, wanted, both, np.zeros(3, bool))
    assert search.flat[both].tolist() == [0, 1], "the first can lie nowhere else"
    assert (counts.replicas <= counts.high).all()
    assert (search.load == Search(search.problem).load).all()


@pytest.mark.parametrize("at_once", [0, 3, 10_000])
def test_brokers_that_are_asked_at_once_are_chosen_as_one_by_one(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    racks = [f"/r{broker % 3}" for broker in range(30)]
    random = np.random.default_rng(5)
    rows = [random.permutation(12)[:3].tolist() for _ in range(600)]
    of = cluster(racks, rows, random.integers(1, 100, 600).tolist())
    asked: list[int] = []
    one = Search.valid_one

    def counted(search: Search, replica: int, broker: int) -> bool:
        asked.append(broker)
        return one(search, replica, broker)

    monkeypatch.setattr(Search, "valid_one", counted)
    usual, count = plan(of, action="rebalance"), len(asked)
    monkeypatch.setattr(filling, "TRIED_ALONE", at_once)
    asked.clear()
    assert plan(of, action="rebalance").plan_hash == usual.plan_hash
    assert (len(asked) < count) == (at_once < TRIED_ALONE)
