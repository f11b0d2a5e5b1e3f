"""When the search of trades ends."""

from __future__ import annotations

import numpy as np
import pytest

from include.domain.request.request import Action, ReassignmentRequest
from include.planning.model.arrays import ClusterArrays
from include.planning.search.local_search import LocalSearch
from include.planning.search.state import Search
from tests.planning.clusters import cluster
from tests.planning.posed import posed


@pytest.mark.parametrize(("hopeless", "moves"), [(np.inf, True), (0.0, False)])
def test_it_ends_once_brokers_that_cannot_be_helped_are_too_far_outside(hopeless, moves):
    # Broker 0 holds a partition larger than any share, and broker 1 four that fit elsewhere.
    of = cluster([""] * 4, [(0,), (1,), (1,), (1,), (1,)], [900, 10, 10, 10, 10])
    request = ReassignmentRequest(Action.REBALANCE, tolerance=0.1)
    search = Search(posed(ClusterArrays.from_snapshot(of.snapshot()), request))
    LocalSearch(search).run(hopeless)
    assert bool((search.rows != search.origin).any()) is moves
