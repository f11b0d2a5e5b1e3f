"""What the books of a search say after many replicas have moved at once."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.planning.model.topic_bands import beyond, cells_beyond, total_beyond
from rehome.planning.search.state import Search
from tests.planning.posed import posed_case, posed_with_headrooms


@pytest.mark.parametrize("few", [True, False])
def test_a_broker_lists_what_it_holds_after_replicas_were_put_down(few: bool) -> None:
    search = Search(posed_case("skew")[0])
    replicas = np.arange(0, search.flat.size, 7)
    search.lift(replicas)
    search.put(replicas, (search.holders(replicas) + 1) % len(search.problem.gives), few=few)
    for broker in range(len(search.problem.gives)):
        held = np.flatnonzero(search.flat == broker)
        assert np.sort(search.on(broker)).tolist() == held.tolist()


@pytest.mark.parametrize("log_dirs", [1, 3])
def test_one_replica_may_go_where_it_may_go_among_others(log_dirs: int) -> None:
    problem, rng = posed_case("skew")[0], np.random.default_rng(2)
    sizes = rng.choice(problem.layout.size, (len(problem.gives), log_dirs))
    posed = posed_with_headrooms(problem, 2 * sizes)
    rows, holders = posed.layout.rows.copy(), Search(posed).flat.copy()
    replicas = rng.integers(0, len(holders), 600)
    brokers = np.r_[holders[replicas[:200]], rng.choice(Search(posed).receivers, 400)]

    def moved() -> Search:
        posed.layout.lay_out(rows)
        search = Search(posed)
        for replica in replicas[:200].tolist():  # so that some may go back
            search.move(replica, int(search.receivers[replica % len(search.receivers)]))
        return search

    search, pairs = moved(), zip(replicas.tolist(), brokers.tolist(), strict=True)
    takes = posed.takes[brokers] | search.held_before(replicas, brokers)
    one_by_one = [search.valid_one(replica, broker) for replica, broker in pairs]
    together = moved().valid(replicas, brokers)
    assert 0 < together.sum() < len(together)
    assert np.array(one_by_one)[takes].tolist() == together[takes].tolist()


@pytest.mark.parametrize("at_once", [5, 1000])
def test_how_far_topics_are_off_is_the_sum_over_their_cells(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    held, low, more = np.random.default_rng(3).integers(0, 9, (3, 7, 4))
    monkeypatch.setattr("rehome.planning.model.topic_bands.CELLS_AT_ONCE", at_once)
    off = sum(
        max(h - (least + m), least - h, 0)
        for h, least, m in zip(held.flat, low.flat, more.flat, strict=True)
    )
    assert total_beyond(held, low, low + more) == beyond(held, low, low + more).sum() == off > 0
    cells, distances = cells_beyond(held, low, low + more)
    assert cells.tolist() == np.flatnonzero(beyond(held, low, low + more)).tolist()
    assert (distances > 0).all()
    assert distances.sum() == off
