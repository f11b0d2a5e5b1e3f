"""Moves that are undone: many at once, with the result of one after the other, largest first."""

from __future__ import annotations

import numpy as np

from include.planning.search.local_search import LEAST_CHANGE
from include.planning.search.state import Search
from include.planning.search.undo_moves import undo_needless_moves
from tests.planning.posed import posed_case


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


def test_no_band_is_met_less_well_for_replicas_that_went_home():
    search = shuffled("skew")
    before, copies = search.excess(slice(None), search.load), len(search.copies())
    undo_needless_moves(search)
    assert len(search.copies()) < copies / 2
    assert search.excess(slice(None), search.load).sum() <= before.sum() + LEAST_CHANGE


def test_the_books_hold_after_replicas_went_home():
    search = shuffled("expansion")
    undo_needless_moves(search)
    search.problem.layout.refresh()
    again = Search(search.problem)
    assert (again.load == search.load).all()
    assert again.copied() == search.copied()
