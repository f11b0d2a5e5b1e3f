"""Moved replicas go home where no band is met less well for it.

As if one after the other, the largest first; those that have nothing to do with each other at once.
"""

from __future__ import annotations

import numpy as np

from include.domain.array_types import NONE, Ints, Mask
from include.planning.placement.stable_order import first_ones, stable_order_of_floats
from include.planning.search.local_search import LEAST_CHANGE
from include.planning.search.state import Search

TOGETHER = 2**18
"""Moved replicas, the next largest, that are tried before any smaller ones."""

HOMECOMINGS = 8
"""Rounds of returns between two looks at which of them still do no harm."""


def undo_needless_moves(search: Search) -> None:
    """Send moved replicas home, largest first, where no band is met less well for it."""
    home = search.home.reshape(-1)
    away = np.flatnonzero((search.flat != home) & (home != NONE))
    open_homes = search.problem.gives & ~search.problem.leaving
    away = away[open_homes[home[away]]]
    away = away[search.seats.of_its_set(away // search.width, home[away].astype(np.int64))]
    away = away[~search.at_home(away, search.holders(away))]
    away = away[stable_order_of_floats(-search.weights[0].take(away // search.width))]
    for start in range(0, len(away), TOGETHER):
        some = away[start : start + TOGETHER]
        while len(some):
            some = some[search.spreads(some, home[some].astype(np.int64))]
            some = some[_harmless(search, some)]
            turns = _turns(search, some)
            for number in range(HOMECOMINGS):
                _send_home(search, some[turns == number])
            some = some[turns == HOMECOMINGS]


def _turns(search: Search, away: Ints) -> Ints:
    """(n,) when each replica is tried: in a turn no two of a broker, for a broker or of a
    partition; HOMECOMINGS where others come first for as long.
    """
    keys = (
        search.holders(away),
        search.home.reshape(-1)[away].astype(np.int64),
        away // search.width,
    )
    early = [first_ones(key, HOMECOMINGS) for key in keys[:2]]
    due, in_the_way = early[0] & early[1], early[0] | early[1]
    partitions = np.zeros(len(search.rows), bool)
    partitions[keys[2][due]] = True
    left = np.flatnonzero(in_the_way | partitions[keys[2]])
    turns = np.full(len(away), HOMECOMINGS)
    for number in range(HOMECOMINGS):
        first = np.logical_and.reduce([first_ones(key[left]) for key in keys])
        turns[left[first]] = number
        left = left[~first]
    return turns


def _send_home(search: Search, slots: Ints) -> None:
    """Send replicas home, no two of a broker, for a broker or of a partition, where no band is met
    less well for it.
    """
    homes = search.home.reshape(-1)[slots].astype(np.int64)
    back = _harmless(search, slots) & search.valid(slots, homes)
    back &= ~(search.rows[slots // search.width] == homes[:, None]).any(axis=1)
    back &= search.spreads(slots, homes)
    search.lift(slots[back])
    search.put(slots[back], homes[back])


def _harmless(search: Search, slots: Ints) -> Mask:
    """(n,) whether sending each replica home leaves all bands as well met."""
    source, target = search.holders(slots), search.home.reshape(-1)[slots].astype(np.int64)
    harmless = np.ones(len(slots), bool)
    for row in np.flatnonzero(search.scale.any(axis=1)).tolist():
        weight, load = search.weights[row].take(slots // search.width), search.load[row]
        harmless &= weight <= (load - search.low[row])[source]
        harmless &= weight <= (search.high[row] - load)[target]
    rest = np.flatnonzero(~harmless)
    weight = search.weight(slots[rest])
    harm = search.added(source[rest], -weight) + search.added(target[rest], weight)
    harmless[rest] = harm <= LEAST_CHANGE
    return harmless
