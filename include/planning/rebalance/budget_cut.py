"""The best part of a plan that a movement budget pays for.

Partitions are taken in the order of excess removed per byte copied, the overhead of a move
included, and looked at again as brokers approach their bands. A part of a valid plan is valid:
replicas are set partition by partition, and disks are counted as if nothing had left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Rows
from include.domain.plan.move_table import MoveCounts
from include.domain.request.request import ReassignmentRequest
from include.planning.model.arrays import fresh
from include.planning.search.state import Problem, Search

RANKINGS = 64
"""How often what is left is ranked anew."""


def budget_of(request: ReassignmentRequest) -> Floats:
    """(2,) bytes and replicas that may be copied; infinite = any number."""
    limits = (request.budget_bytes, request.budget_moves)
    return np.array([np.inf if limit is None else float(limit) for limit in limits])


def for_each_of(parts: int, request: ReassignmentRequest) -> ReassignmentRequest:
    """The request with what each of so many parts of a cluster may copy, rounded down."""
    of_bytes, of_moves = (
        None if limit is None else limit // parts
        for limit in (request.budget_bytes, request.budget_moves)
    )
    return replace(request, budget_bytes=of_bytes, budget_moves=of_moves)


def less(request: ReassignmentRequest, spent: Iterable[MoveCounts]) -> ReassignmentRequest:
    """The request with what moves made elsewhere leave of its budget."""
    budget_bytes, budget_moves = request.budget_bytes, request.budget_moves
    for moves in spent:
        if budget_bytes is not None:
            budget_bytes -= moves.bytes_to_move
        if budget_moves is not None:
            budget_moves -= moves.replica_moves
    return replace(request, budget_bytes=budget_bytes, budget_moves=budget_moves)


def keep_within_budget(problem: Problem, budget: Floats) -> bool:
    """Take back what the budget does not pay for, in place; whether anything was taken back.

    :param budget: (2,) bytes and replicas that may be copied.
    """
    layout = problem.layout
    copies = fresh(layout.rows, layout.home).sum(axis=1)
    planned = np.flatnonzero(copies)
    size = layout.size.astype(float)
    costs = np.stack([copies * size, copies.astype(float)])
    if (costs.sum(axis=1) <= budget).all():
        return False
    wanted = layout.rows.copy()
    layout.rows[planned] = layout.home[planned]
    layout.refresh()
    search = Search(problem)
    left = budget
    for _ in range(RANKINGS * 4):
        planned = planned[(costs[:, planned] <= left[:, None]).all(axis=0)]
        gain = _gain(search, wanted, planned)
        score = gain / (costs[0, planned] + problem.overhead_bytes * costs[1, planned] + 1)
        order = np.argsort(-score, kind="stable")
        order = order[gain[order] > 0][: max(1, len(planned) // RANKINGS)]
        if not len(order):
            break
        sums = np.cumsum(costs[:, planned[order]], axis=1)
        chosen = planned[order[(sums <= left[:, None]).all(axis=0)]]
        left = left - costs[:, chosen].sum(axis=1)
        _set(search, wanted, chosen)
        planned = np.setdiff1d(planned, chosen)
    layout.refresh()
    return True


def _changes(search: Search, wanted: Rows, partitions: Ints) -> tuple[Ints, Ints]:
    """Slots whose broker changes, and the brokers they go to."""
    places = np.arange(search.width)
    slots = (partitions[:, None] * search.width + places).ravel()
    targets = wanted[partitions].ravel().astype(np.int64)
    moved = (search.flat[slots] != targets) & (targets != NONE)
    return slots[moved], targets[moved]


def _gain(search: Search, wanted: Rows, partitions: Ints) -> Floats:
    """(n,) excess removed by moving each partition alone."""
    slots, targets = _changes(search, wanted, partitions)
    source, weight = search.holders(slots), search.weight(slots)
    leaves, enters = search.load[:, source], search.load[:, targets]
    gain = (
        search.excess(source, leaves)
        - search.excess(source, leaves - weight)
        + search.excess(targets, enters)
        - search.excess(targets, enters + weight)
    )
    if search.books:
        gain -= search.unit * search.books.moving(slots // search.width, source, targets)
    place = np.searchsorted(partitions, slots // search.width)
    return np.bincount(place, gain, len(partitions)).astype(float)


def _set(search: Search, wanted: Rows, partitions: Ints) -> None:
    slots, targets = _changes(search, wanted, partitions)
    search.lift(slots)
    search.put(slots, targets)
