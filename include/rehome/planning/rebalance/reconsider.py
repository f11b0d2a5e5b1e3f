"""Reconsider copies of a small cluster's plan one by one: is the plan cheaper without?

And with fewer and larger ones, or with smaller ones?
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rehome.domain.array_types import Rows
from rehome.planning.model.arrays import is_new
from rehome.planning.search.fewer_copies import exchange_and_merge
from rehome.planning.search.local_search import LocalSearch
from rehome.planning.search.state import Problem, Search
from rehome.planning.search.undo_moves import undo_needless_moves, undo_whole_partitions


@dataclass(frozen=True, slots=True)
class ReconsiderOptions:
    """How a small cluster's layout is improved copy by copy.

    :param reconsidered: the largest copies that are reconsidered per round.
    :param unmet_trials: the most trials while bands are not met: each takes several times as long
        if no plan can meet them.
    :param rounds: the most rounds.
    :param move_prices: what a move counts in addition to its bytes, in mean sizes of replicas. With
        the lower price a plan mostly copies fewer bytes, with the higher one it moves fewer
        replicas; on some clusters it is the other way round.
    :param more_bytes: how many times as many bytes may be copied where fewer replicas move for it.
    :param improved: how often a layout is improved, once if bands are unmet then.
    :param part_for_smaller: part of what is left of the work for fewer and smaller copies.
    :param part_for_reconsidering: the same for reconsidering.
    """

    reconsidered: int = 40
    unmet_trials: int = 20
    rounds: int = 4
    move_prices: tuple[float, ...] = 0.1, 0.5
    more_bytes: float = 1.015
    improved: int = 3
    part_for_smaller: float = 0.25
    part_for_reconsidering: float = 0.6


RECONSIDER = ReconsiderOptions()


def improve(search: Search, exchange: Callable[[Search], None]) -> tuple[float, float]:
    """Improve a layout copy by copy. Returns the objective that is reached.

    :param exchange: replaces the largest copies by smaller ones.
    """
    for _ in range(RECONSIDER.improved):
        before = search.objective()
        with search.work.at_most(RECONSIDER.part_for_smaller):
            exchange_and_merge(search, search.copied_bytes())
        with search.work.at_most(RECONSIDER.part_for_reconsidering):
            reconsider(search)
        after = search.objective()
        if after[0] > 0 or after >= before:
            break
    exchange(search)
    exchange_and_merge(search, RECONSIDER.more_bytes * search.copied_bytes())
    undo_needless_moves(search)
    undo_whole_partitions(search)
    return search.objective()


def with_price(problem: Problem, price: float) -> Problem:
    """The same problem if a move counts so much of a replica's mean size in addition to its bytes,
    and at least what is requested.
    """
    size = problem.layout.size[problem.partitions & (problem.layout.size > 0)]
    overhead = price * float(size.mean()) if len(size) else 0.0
    return replace(problem, overhead_bytes=max(problem.overhead_bytes, overhead))


def best_of(layouts: list[tuple[float, float, Rows]], origin: Rows) -> Rows:
    """The layout that is closest to the bands; of equals, with the fewest moves among those with
    few bytes.

    :param layouts: excess, bytes copied and rows of each layout.
    """
    least = min(excess for excess, _, _ in layouts)
    met = [(copied, rows) for excess, copied, rows in layouts if excess <= least]
    most = RECONSIDER.more_bytes * min(copied for copied, _ in met)
    few = [rows for copied, rows in met if copied <= most]
    return min(few, key=lambda rows: int(is_new(rows, origin).sum()))


def reconsider(search: Search) -> tuple[float, float]:
    """Undo the largest copies one at a time, each followed by local search and undo. Keep the
    result if its objective is lower; else restore the layout. (A form of ruin and recreate, with
    one replica.)

    :returns: the objective that is reached.
    """
    origins, objective, trials = search.origin.reshape(-1), search.objective(), 0
    for _ in range(RECONSIDER.rounds):
        before = objective
        copies = search.copies()
        size = search.weights[0].take(copies // search.width)
        for replica in copies[np.argsort(-size, kind="stable")][: RECONSIDER.reconsidered].tolist():
            origin = int(origins[replica])
            if search.flat[replica] == origin or not search.valid_one(replica, origin):
                continue
            if objective[0] > 0 and trials >= RECONSIDER.unmet_trials:
                return objective
            if search.work.is_spent():
                return objective
            trials += 1
            state = search.save()
            search.move(replica, origin)
            LocalSearch(search).run(hopeless=objective[0] or np.inf)
            undo_needless_moves(search)
            if (new_objective := search.objective()) < objective and not _leaves_copies_uneven(
                search
            ):
                objective = new_objective
            else:
                search.restore(state)
        if objective >= before:
            break
    return objective


def _leaves_copies_uneven(search: Search) -> bool:
    """Whether a partition that is copied ends unevenly spread, though it could be repaired."""
    layout, tree = search.problem.layout, search.problem.tree
    if search.racks.even() or not search.problem.gives[tree.hosts].all():
        return False
    moved = layout.changed_partitions()
    copied = moved[is_new(layout.rows[moved], layout.origin[moved]).any(axis=1)]
    return bool((tree.violations_of(copied, layout.rows[copied]) > 0).any())
