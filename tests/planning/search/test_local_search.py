"""When the search of trades ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rehome.domain.actions import Action
from rehome.domain.array_types import NONE, Ints, Mask
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.search.local_search import LocalSearch
from rehome.planning.search.state import Search
from rehome.planning.search.trades import Trades
from tests.planning.clusters import cluster
from tests.planning.posed import posed


@pytest.mark.parametrize(("hopeless", "moves"), [(np.inf, True), (0.0, False)])
def test_it_ends_once_brokers_that_cannot_be_helped_are_too_far_outside(
    hopeless: float, moves: bool
) -> None:
    # Broker 0 holds a partition larger than any share, and broker 1 four that fit elsewhere.
    of = cluster([""] * 4, [(0,), (1,), (1,), (1,), (1,)], [900, 10, 10, 10, 10])
    request = ReassignmentRequest(Action.REBALANCE, tolerance=0.1)
    search = Search(posed(ClusterArrays.from_snapshot(of.snapshot()), request))
    LocalSearch(search).run(hopeless)
    assert bool((search.rows != search.origin).any()) is moves


def test_with_further_resources_swaps_are_tried_with_the_broker_that_deviates_the_other_way() -> (
    None
):
    # All hold as many bytes as they may, so only swaps help. Of 100 brokers, one can take more of
    # what brokers would send if they led; it is not among 48 that are spaced evenly.
    rows = [(broker,) for broker in range(100) for _ in range(2)]
    request = ReassignmentRequest(
        Action.REBALANCE,
        tolerance=0.0,
        one_sided=True,
        tolerances={"topic_spread": np.inf, "bytes_in": np.inf, "potential_bytes_out": 0.0},
    )

    def searched(sends: dict[int, float]) -> Search:
        of = cluster([""] * 100, rows)
        out = {p: sends.get(brokers[0], 25e6) for p, brokers in of.replicas.items()}
        of = replace(of, bytes_in=dict.fromkeys(out, 0.0), bytes_out=out)
        return Search(posed(ClusterArrays.from_snapshot(of.snapshot()), request))

    idle = int([broker for broker in searched({}).receivers.tolist() if broker != 0][1])
    search = searched({0: 30e6, idle: 20e6})
    assert search.problem.further
    assert search.outside() > 0
    LocalSearch(search).run()
    assert search.outside() == 0


def test_with_further_resources_trades_that_help_little_wait_for_swaps() -> None:
    # Broker 0 would send 10 MB/s too much if it led. It holds no more bytes than it has to, so of
    # its replicas only the empty one can be pushed away, and that one hardly helps.
    rows, size = [(0,), (0,), (0,), (1,), (1,)], [100, 100, 0, 100, 100]
    of = cluster([""] * 2, rows, size)
    out = dict(zip(of.replicas, [60e6, 59.9e6, 0.1e6, 50e6, 50e6], strict=True))
    of = replace(of, bytes_in=dict.fromkeys(out, 0.0), bytes_out=out)
    tolerances = {
        **dict.fromkeys(("topic_spread", "bytes_in", "replicas"), np.inf),
        "potential_bytes_out": 0.0,
    }
    request = ReassignmentRequest(Action.REBALANCE, tolerance=0.0, tolerances=tolerances)
    search = Search(posed(ClusterArrays.from_snapshot(of.snapshot()), request))
    LocalSearch(search).run()
    moved = np.flatnonzero(search.flat != search.origin.reshape(-1))
    assert moved.tolist() in ([0, 3], [0, 4])


def test_with_further_resources_swaps_of_large_replicas_are_tried_among_many_small_ones() -> None:
    # Both brokers hold exactly the bytes that they should. The third largest replica of broker 0
    # would send 10 MB/s too much, that of broker 1 as much too little.
    sizes = [*range(1, 401), *range(1000, 11_000, 1000)]
    sent = [0.0] * 400 + [50e6] * 10
    third = len(sizes) - 3
    rows = [(broker,) for broker in (0, 1) for _ in sizes]
    of = cluster([""] * 2, rows, sizes * 2)
    out = dict(zip(of.replicas, sent * 2, strict=True))
    swapped = [list(of.replicas)[broker * len(sizes) + third] for broker in (0, 1)]
    out |= dict(zip(swapped, (60e6, 40e6), strict=True))
    of = replace(of, bytes_in=dict.fromkeys(out, 0.0), bytes_out=out)
    tolerances = {
        **dict.fromkeys(("topic_spread", "bytes_in", "replicas"), np.inf),
        "potential_bytes_out": 0.0,
    }
    request = ReassignmentRequest(Action.REBALANCE, tolerance=0.0, tolerances=tolerances)
    search = Search(posed(ClusterArrays.from_snapshot(of.snapshot()), request))
    LocalSearch(search).run()
    assert search.outside() == 0


def test_only_the_best_trade_that_moves_a_replica_stays() -> None:
    give, take = np.array([7] * 6 + [8] + [NONE] * 6), np.array([NONE] * 7 + list(range(6)))
    gain = np.array([1.0, 6, 2, 5, 3, 4, 1] + [1] * 6)
    trades = Trades(give, take, np.arange(13), gain, np.ones(13))
    assert trades.vary().other.tolist() == [1, 3, 4, 5, *range(6, 13)]


def test_where_hardly_any_trade_is_valid_more_and_more_are_checked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = cluster([""] * 10, [(0,)] * 2_000)
    request = ReassignmentRequest(Action.REBALANCE, tolerances={"topic_spread": None})
    search = Search(posed(ClusterArrays.from_snapshot(of.snapshot()), request))
    checked: list[int] = []

    def refused(replicas: Ints, brokers: Ints) -> Mask:
        checked.append(len(replicas))
        return np.zeros(len(brokers), bool)

    monkeypatch.setattr(search, "valid", refused)
    LocalSearch(search).run()
    assert sum(checked) > 16_384
    assert sum(size > 0 for size in checked) < 60
