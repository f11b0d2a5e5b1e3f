"""Copies of a small cluster's plan that are reconsidered one by one: might they stay at home?"""

from __future__ import annotations

import numpy as np

from include.planning.model.arrays import is_new
from include.planning.search.local_search import LocalSearch
from include.planning.search.state import Search
from include.planning.search.undo_moves import undo_needless_moves

RECONSIDERED = 40
"""Copies, the largest ones, of a small cluster that are reconsidered in each round."""

UNMET_TRIALS = 20
"""Copies that are reconsidered before bands that are still not met are given up: each takes several
times as long where no plan meets the bands.
"""

ROUNDS = 4
"""Rounds in which they are reconsidered."""


def reconsider(search: Search) -> tuple[float, float]:
    """Send the largest copies home, one at a time, and see whether trades that bring all brokers
    back into their bands, or closer to them, cost less; where they do not, all is as before.

    :returns: the worth of what it comes to.
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
