"""Reconsider copies of a small cluster's plan one by one: is the plan cheaper without?"""

from __future__ import annotations

import numpy as np

from include.planning.model.arrays import is_new
from include.planning.search.local_search import LocalSearch
from include.planning.search.state import Search
from include.planning.search.undo_moves import undo_needless_moves

RECONSIDERED = 40
"""The largest copies that are reconsidered per round."""

UNMET_TRIALS = 20
"""The most trials while bands are not met: each takes several times as long if no plan can meet
them.
"""

ROUNDS = 4
"""The most rounds."""


def reconsider(search: Search) -> tuple[float, float]:
    """Undo the largest copies one at a time, each followed by local search and undo. Keep the
    result if its objective is lower; else restore the layout. (A form of ruin and recreate, with
    one replica.)

    :returns: the objective that is reached.
    """
    origins, objective, trials = search.origin.reshape(-1), search.objective(), 0
    for _ in range(ROUNDS):
        before = objective
        copies = search.copies()
        size = search.weights[0].take(copies // search.width)
        for replica in copies[np.argsort(-size, kind="stable")][:RECONSIDERED].tolist():
            origin = int(origins[replica])
            if search.flat[replica] == origin or not search.valid_one(replica, origin):
                continue
            if objective[0] > 0 and trials >= UNMET_TRIALS:
                return objective
            if search.work.spent():
                return objective
            trials += 1
            state = search.saved()
            search.move(replica, origin)
            LocalSearch(search).run(hopeless=objective[0] or np.inf)
            undo_needless_moves(search)
            if (found := search.objective()) < objective and not _leaves_copies_uneven(search):
                objective = found
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
    moved = layout.changed()
    copied = moved[is_new(layout.rows[moved], layout.origin[moved]).any(axis=1)]
    return bool((tree.violations_of(copied, layout.rows[copied]) > 0).any())
