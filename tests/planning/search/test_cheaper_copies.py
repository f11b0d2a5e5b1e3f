"""Copies that are replaced by smaller ones: none is missed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rehome.planning.search.cheaper_copies import exchange_copies
from rehome.planning.search.fill import fill
from rehome.planning.search.shed import shed, wanted_loads
from rehome.planning.search.state import LEAST_CHANGE, Search
from tests.planning.posed import posed_case


def excess_if(search: Search, replica: int, smaller: int) -> float:
    """Excess of all brokers if the copy goes back, and a smaller replica moves instead."""
    origin, there = int(search.origin.reshape(-1)[replica]), int(search.flat[replica])
    load, weights = search.load.copy(), search.weights
    gained = weights[:, replica // search.width] - weights[:, smaller // search.width]
    load[:, origin] += gained
    load[:, there] -= gained
    return float(search.excess(slice(None), load).sum())


def cheaper_ones(search: Search) -> list[tuple[int, int]]:
    """Copies, and smaller replicas of their origins that could move instead, by trying all."""
    found, now = [], float(search.excess(slice(None), search.load).sum())
    size = search.weights[0].take(np.arange(search.flat.size) // search.width)
    for replica in search.copies().tolist():
        origin, there = int(search.origin.reshape(-1)[replica]), int(search.flat[replica])
        if origin in search.rows[replica // search.width].tolist():
            continue
        held = search.on(origin)
        held = held[search.held_before(held, np.array(origin)) & (size[held] < size[replica])]
        found += [
            (replica, smaller)
            for smaller in held.tolist()
            if excess_if(search, replica, smaller) <= now - LEAST_CHANGE
            and smaller // search.width != replica // search.width
            and search.valid_one(replica, origin)
            and search.valid_one(smaller, there)
        ]
    return found


@pytest.mark.parametrize("name", ["skew", "expansion"])
def test_no_copy_is_left_for_which_a_smaller_one_would_do(name: str) -> None:
    search = Search(posed_case(name, 120, 12)[0])
    wanted = wanted_loads(search, (0.98, 0.8, 0.8))
    short = np.zeros(len(search.problem.gives), bool)
    fill(search, wanted, shed(search, wanted, short), short)
    before = search.copied_bytes()
    assert cheaper_ones(search)
    exchange_copies(search, 1_000)
    assert search.copied_bytes() < before
    assert not cheaper_ones(search)


def test_no_other_replica_goes_to_a_broker_that_receives_none() -> None:
    """A repair of racks may have brought copies there."""
    problem = posed_case("skew", 120, 12)[0]
    search = Search(problem)
    wanted = wanted_loads(search, (0.98, 0.8, 0.8))
    short = np.zeros(len(problem.gives), bool)
    fill(search, wanted, shed(search, wanted, short), short)
    rows = search.rows.copy()
    for broker in np.unique(search.holders(search.copies())).tolist():
        problem.layout.lay_out(rows)
        closed = np.arange(len(problem.takes)) == broker
        one = Search(replace(problem, takes=problem.takes & ~closed))
        before = copies_on(one, broker)
        exchange_copies(one, 1_000)
        assert copies_on(one, broker) <= before


def copies_on(search: Search, broker: int) -> set[int]:
    copies = search.copies()
    return set(copies[search.holders(copies) == broker].tolist())
