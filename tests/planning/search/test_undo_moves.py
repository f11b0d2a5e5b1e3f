"""Moves that are undone: many at once, with the result of one after the other, largest first."""

from __future__ import annotations

import numpy as np

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.search.state import LEAST_CHANGE, Search
from rehome.planning.search.undo_moves import undo_needless_moves, undo_whole_partitions
from tests.planning.clusters import cluster
from tests.planning.posed import posed, posed_case


def shuffled(name: str) -> Search:
    """A case of which every fifth replica has traded brokers with the one after it."""
    search = Search(posed_case(name)[0])
    replicas = np.arange(0, search.flat.size - search.width, 5 * search.width)
    for replica in replicas.tolist():
        other = replica + search.width
        mine, theirs = int(search.flat[replica]), int(search.flat[other])
        for moved, broker in ((replica, theirs), (other, mine)):
            if search.valid_one(moved, broker):
                search.move(moved, broker)
    return search


def test_no_band_is_met_less_well_for_replicas_that_went_home() -> None:
    search = shuffled("skew")
    before, copies = search.excess(slice(None), search.load), len(search.copies())
    undo_needless_moves(search)
    assert len(search.copies()) < copies / 2
    assert search.excess(slice(None), search.load).sum() <= before.sum() + LEAST_CHANGE


def test_the_books_hold_after_replicas_went_home() -> None:
    search = shuffled("expansion")
    undo_needless_moves(search)
    search.problem.layout.refresh()
    again = Search(search.problem)
    assert (again.load == search.load).all()
    assert again.copied_bytes() == search.copied_bytes()


def with_racks(brokers: tuple[int, int], low: float = 0.0) -> Search:
    """The first partition has gone from brokers 0 and 1 to these two; racks are a b a b."""
    of = cluster(["a", "b", "a", "b"], [(0, 1)] * 3, [500, 300, 200])
    request = ReassignmentRequest(Action.REBALANCE, tolerance=1.0)
    search = Search(posed(ClusterArrays.from_snapshot(of.snapshot()), request))
    for position, broker in enumerate(brokers):
        search.move(position, broker)
    search.low[:], search.high[:] = low, 3_000
    return search


def test_partitions_return_as_a_whole_where_racks_let_no_replica_return_alone() -> None:
    search = with_racks((3, 2))
    undo_needless_moves(search)
    assert search.rows[0].tolist() == [3, 2]
    undo_whole_partitions(search)
    assert search.rows[0].tolist() == [0, 1]
    assert not search.copied_bytes()
    assert (search.load == with_racks((0, 1)).load).all()


def test_a_partition_that_a_band_needs_does_not_return_as_a_whole() -> None:
    search = with_racks((3, 2), low=500)
    undo_whole_partitions(search)
    assert search.rows[0].tolist() == [3, 2]
