"""Copies of a small cluster's plan that are reconsidered one by one: might they stay at home?"""

from __future__ import annotations

import numpy as np

from include.planning.model.arrays import fresh
from include.planning.search.local_search import Polisher
from include.planning.search.returns import undo_needless_moves
from include.planning.search.state import Search

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
    home, worth, trials = search.home.reshape(-1), search.worth(), 0
    for _ in range(ROUNDS):
        before = worth
        away = search.away()
        size = search.weights[0].take(away // search.width)
        for slot in away[np.argsort(-size, kind="stable")][:RECONSIDERED].tolist():
            origin = int(home[slot])
            if search.flat[slot] == origin or not search.valid_one(slot, origin):
                continue
            if worth[0] > 0 and trials >= UNMET_TRIALS:
                return worth
            trials += 1
            state = search.saved()
            search.move(slot, origin)
            Polisher(search).run(hopeless=worth[0] or np.inf)
            undo_needless_moves(search)
            if (found := search.worth()) < worth and not _leaves_copies_uneven(search):
                worth = found
            else:
                search.restore(state)
        if worth >= before:
            break
    return worth


def _leaves_copies_uneven(search: Search) -> bool:
    """Whether a partition that is copied ends unevenly spread, though it could be repaired."""
    layout, tree = search.problem.layout, search.problem.tree
    if search.seats.even() or not search.problem.gives[tree.hosts].all():
        return False
    moved = layout.changed()
    copied = moved[fresh(layout.rows[moved], layout.home[moved]).any(axis=1)]
    return bool((tree.violations_of(copied, layout.rows[copied]) > 0).any())
