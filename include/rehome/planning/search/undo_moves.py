"""Undo moves that no band needs.

The result is as if moves were undone one by one, largest first; independent ones are undone
together. Partitions with several moved replicas can return as a whole: racks may allow that where
they allow no single replica to return.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask
from rehome.planning.model.arrays import is_new
from rehome.planning.placement.stable_order import first_ones, stable_order_of_floats
from rehome.planning.search.state import LEAST_CHANGE, Search


@dataclass(frozen=True, slots=True)
class UndoOptions:
    """How many moves are tried before others.

    :param turns: turns between two checks of which moves can still be undone.
    :param whole_partitions: partitions that may return as a whole, at most: the largest ones.
    """

    turns: int = 8
    whole_partitions: int = 2_000


UNDO = UndoOptions()


def undo_needless_moves(search: Search) -> None:
    """Move replicas back to their origin, largest first, if no band is met less well then."""
    origin = search.origin.reshape(-1)
    moved = np.flatnonzero((search.flat != origin) & (origin != NONE))
    may_return = search.problem.gives & ~search.problem.leaving
    moved = moved[may_return[origin[moved]]]
    moved = moved[search.racks.of_its_set(moved // search.width, origin[moved].astype(np.int64))]
    moved = moved[~search.held_before(moved, search.holders(moved))]
    some = moved[stable_order_of_floats(-search.weights[0].take(moved // search.width))]
    while len(some):
        some = some[search.spreads(some, origin[some].astype(np.int64))]
        some = some[_harmless(search, some)]
        turns = _turns(search, some)
        for number in range(UNDO.turns):
            _undo(search, some[turns == number])
        some = some[turns == UNDO.turns]


def undo_whole_partitions(search: Search) -> None:
    """Give partitions with several moved replicas their brokers back, largest first, if no band is
    met less well then. Without effect with caps or broker sets.
    """
    rows, origin, tree = search.rows, search.origin, search.problem.tree
    if search.problem.layout.arrays.limits is not None:
        return
    may_return = search.problem.gives & ~search.problem.leaving
    moved = ((rows != origin).sum(axis=1) > 1) & ((rows == NONE) == (origin == NONE)).all(axis=1)
    some = np.flatnonzero(moved & is_new(rows, origin).any(axis=1))
    stays_away = is_new(origin[some], rows[some]) & ~may_return[origin[some]]
    some = some[~stays_away.any(axis=1)]
    some = some[tree.violations_of(some, origin[some]) <= tree.violations_of(some, rows[some])]
    some = some[_harmless_wholes(search, some)]
    for partition in some[stable_order_of_floats(-search.weights[0].take(some))][
        : UNDO.whole_partitions
    ].tolist():
        if _harmless_wholes(search, np.array([partition]))[0]:
            for position in np.flatnonzero(rows[partition] != origin[partition]).tolist():
                search.move(partition * search.width + position, int(origin[partition, position]))


def _harmless_wholes(search: Search, partitions: Ints) -> Mask:
    """(n,) whether all bands are met as well as now if a partition, considered alone, is where it
    was.
    """
    rows, origin = search.rows[partitions], search.origin[partitions]
    weight = search.weights[:, partitions, None]
    leaves, returns = is_new(rows, origin), is_new(origin, rows)
    harm = (search.excess_change(rows.astype(np.int64), -weight) * leaves).sum(axis=1)
    harm += (search.excess_change(origin.astype(np.int64), weight) * returns).sum(axis=1)
    harmless: Mask = np.asarray(harm <= LEAST_CHANGE)
    counts = search.topic_counts
    if counts is not None and search.strict:
        worse = (counts.leaving(counts.cells(partitions[:, None], rows)) * leaves).sum(axis=1)
        worse += (counts.arriving(counts.cells(partitions[:, None], origin)) * returns).sum(axis=1)
        harmless &= worse <= 0
    return harmless


def _turns(search: Search, moved: Ints) -> Ints:
    """(n,) the turn of each replica. Replicas of one turn differ in source, target and partition.
    UNDO.turns = not in these turns.
    """
    keys = (
        search.holders(moved),
        search.origin.reshape(-1)[moved].astype(np.int64),
        moved // search.width,
    )
    early = [first_ones(key, UNDO.turns) for key in keys[:2]]
    due, in_the_way = early[0] & early[1], early[0] | early[1]
    partitions = np.zeros(len(search.rows), bool)
    partitions[keys[2][due]] = True
    left = np.flatnonzero(in_the_way | partitions[keys[2]])
    turns = np.full(len(moved), UNDO.turns)
    for number in range(UNDO.turns):
        first = np.logical_and.reduce([first_ones(key[left]) for key in keys])
        turns[left[first]] = number
        left = left[~first]
    return turns


def _undo(search: Search, replicas: Ints) -> None:
    """Undo the moves of these replicas (no two share source, target or partition) if no band is met
    less well.
    """
    origins = search.origin.reshape(-1)[replicas].astype(np.int64)
    back = _harmless(search, replicas) & search.valid(replicas, origins)
    back &= ~(search.rows[replicas // search.width] == origins[:, None]).any(axis=1)
    back &= search.spreads(replicas, origins)
    search.lift(replicas[back])
    search.put(replicas[back], origins[back])


def _harmless(search: Search, replicas: Ints) -> Mask:
    """(n,) whether undoing each move leaves all bands met as well as now."""
    source, target = search.holders(replicas), search.origin.reshape(-1)[replicas].astype(np.int64)
    harmless = np.ones(len(replicas), bool)
    for row in np.flatnonzero(search.scale.any(axis=1)).tolist():
        weight, load = search.weights[row].take(replicas // search.width), search.load[row]
        harmless &= weight <= (load - search.low[row])[source]
        harmless &= weight <= (search.high[row] - load)[target]
    rest = np.flatnonzero(~harmless)
    weight = search.weight(replicas[rest])
    harm = search.excess_change(source[rest], -weight) + search.excess_change(target[rest], weight)
    harmless[rest] = harm <= LEAST_CHANGE
    return harmless
