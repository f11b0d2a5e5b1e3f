"""Which replicas a broker gives up where only bytes matter, and what a move adds to an excess."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.clusters import CASES, build
from benchmarks.planning.plan import solved
from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays, is_new, replica_counts
from rehome.planning.search.broker_shed import BYTES_ROW, BrokerShed, largest_within
from rehome.planning.search.leader_egress import LeaderEgress
from rehome.planning.search.shed import wanted_loads
from rehome.planning.search.state import Search
from tests.examples import examples
from tests.planning.clusters import cluster
from tests.planning.posed import posed

RACKS = ["/a", "/b", "/c"]


def search_of(
    rows: list[list[int]], sizes: list[int], tolerances: dict[str, float | None] | None = None
) -> Search:
    """The search of a rebalance of three brokers, before anything has moved."""
    request = ReassignmentRequest(Action.REBALANCE, tolerances=tolerances or {})
    arrays = ClusterArrays.from_snapshot(cluster(RACKS, rows, sizes).snapshot())
    return Search(posed(arrays, request))


@pytest.mark.parametrize(
    ("size_bytes", "given_up"),
    [
        (2000, [800, 600, 300, 200]),
        (1000, [800, 200]),
        (799, [600]),
        (500, [300, 200]),
        (150, []),
        (0, []),
    ],
)
def test_a_broker_gives_up_its_largest_replicas_that_fit_and_no_empty_one(
    size_bytes: int, given_up: list[int]
) -> None:
    sizes = [300, 200, 0, 800, 600]
    search = search_of([[0]] * len(sizes), sizes)
    senders = LeaderEgress.of(search, search.load)
    replicas = largest_within(search, search.on(0), 0, float(size_bytes), senders)
    assert search.weights[BYTES_ROW, replicas // search.width].tolist() == given_up


def test_replicas_are_spared_whose_leader_sends_enough_where_others_are_left() -> None:
    search = search_of([[0, 1]] * 3 + [[1, 0]] * 3, [500, 300, 200, 400, 300, 300])
    wanted = search.load.copy()
    wanted[BYTES_ROW, 2] += 500
    senders = LeaderEgress.of(search, wanted)
    assert senders.most == pytest.approx(600)
    replicas = search.on(0)
    assert senders.without_busy_leaders(replicas).tolist() == replicas.tolist()
    senders.send(np.array([0]))  # broker 0 sends 500 of the first partition
    assert (senders.without_busy_leaders(replicas) // 2).tolist() == [3, 4, 5]
    senders.send(np.array([6, 8]))  # broker 1 sends 700: too little would be left
    assert senders.without_busy_leaders(replicas).tolist() == replicas.tolist()


def chosen(
    rows: list[list[int]], sizes: list[int], sent: list[int], size_bytes: float
) -> list[int]:
    """Partitions that broker 0 gives up while leaders are to send 600 at most."""
    search = search_of(rows, sizes)
    wanted = search.load.copy()
    wanted[BYTES_ROW, 2] += 500
    senders = LeaderEgress.of(search, wanted)
    senders.sent += sent
    before = senders.sent.copy()
    replicas = largest_within(search, search.on(0), 0, size_bytes, senders)
    given_up = senders.sent - before
    senders.sent[:] = 0
    senders.send(replicas)
    assert given_up.tolist() == senders.sent.tolist()
    return sorted((replicas // search.width).tolist())


def test_replicas_whose_leader_sends_enough_wait_until_the_others_have_left() -> None:
    rows, sizes = [[1, 0], [0, 1], [2, 0]], [400, 300, 300]
    assert chosen(rows, sizes, [0, 0, 0], 700) == [0, 1]
    assert chosen(rows, sizes, [0, 300, 0], 600) == [1, 2]
    assert chosen(rows, sizes, [0, 300, 0], 1000) == [0, 1, 2]
    assert chosen(rows, sizes, [400, 300, 400], 400) == [0]


def test_of_replicas_that_are_alike_those_led_in_the_brokers_zone_leave() -> None:
    assert chosen([[1, 0], [0, 1]], [100, 90], [0, 0, 0], 100) == [1]
    assert chosen([[1, 0], [0, 1]], [100, 80], [0, 0, 0], 100) == [0]


@examples(30)
@given(seed=st.integers(0, 10_000))
def test_what_more_load_adds_is_the_excess_after_less_the_excess_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [[int(broker)] for broker in rng.integers(0, 2, 30)]
    sizes = rng.integers(1, 1000, 30).tolist()
    search = search_of(rows, sizes, {"replicas": 0.1})
    brokers = rng.integers(0, 3, 20)
    more = rng.integers(-5000, 5000, (3, 20)).astype(float)
    load = search.load[:, brokers]
    wanted = search.excess(brokers, load + more) - search.excess(brokers, load)
    np.testing.assert_allclose(search.excess_change(brokers, more), wanted, atol=1e-12)


def test_replicas_are_counted_without_the_padding() -> None:
    rows = np.array([[1, 2, -1], [-1, -1, -1], [3, 4, 5]], np.int32)
    assert replica_counts(rows).tolist() == [2, 0, 3]


def test_with_further_resources_replicas_that_leave_carry_little_of_other_resources() -> None:
    # Broker 0 receives too much; if it led everything, it would send what the others would.
    rows, size = [[0]] * 20 + [[1]] * 20 + [[2]] * 20, [100] * 60
    of = cluster(RACKS, rows, size)
    arrives = [10e6] * 10 + [11e6] * 10 + [2e6] * 40
    sends = [0.0] * 10 + [30e6] * 10 + [15e6] * 40
    of = replace(
        of,
        bytes_in=dict(zip(of.replicas, arrives, strict=True)),
        bytes_out=dict(zip(of.replicas, sends, strict=True)),
    )
    request = ReassignmentRequest(
        Action.REBALANCE, tolerance=1.0, tolerances={"potential_bytes_out": 0.1}
    )
    search = Search(posed(ClusterArrays.from_snapshot(of.snapshot()), request))
    wanted = wanted_loads(search, (0.98, 0.8, 0.8))
    given_up = BrokerShed(search, wanted, 0, search.on(0)).choose() // search.width
    assert len(given_up) >= 8
    assert given_up.max() < 10  # none of those that would send much


def test_where_their_number_has_no_band_few_replicas_close_the_gap_of_bytes() -> None:
    case = next(case for case in CASES if case.name == "uneven")
    layout = solved(build(case, 7_000, 30), "default").layout
    copies = is_new(layout.rows, layout.origin)
    copied = (copies.sum(axis=1) * layout.size).sum()
    assert copies.sum() <= 420  # 528 if the coldest leave in their order, whatever their size
    assert copied <= 1.005 * 24.35e12
