"""Cheaper copies for the same balance: a moved replica goes home, a smaller one goes instead."""

from __future__ import annotations

import numpy as np

from include.domain.array_types import Floats, Mask
from include.planning.search.state import Search

REPLACEMENTS_CHECKED = 32
"""Replacements of one replica that are checked, the cheapest first."""

EXCHANGE_ROUNDS = 4


def exchange_copies(search: Search, most: int) -> None:
    """Replace copies by smaller ones, largest first, where no band is met less well for it.

    :param most: copies that are looked at per round; a round that looks at all of them is
        followed by another as long as it helps.
    """
    home = search.home.reshape(-1)
    for _ in range(EXCHANGE_ROUNDS):
        away = search.away()
        away = away[(search.problem.gives & ~search.problem.leaving)[home[away]]]
        size = search.weights[0].take(away // search.width)
        order = away[np.argsort(-size, kind="stable")][:most].tolist()
        replaced = sum(_replace(search, slot, int(home[slot])) for slot in order)
        if not replaced or len(away) > most:
            return


def _replace(search: Search, slot: int, home: int) -> bool:
    """Send one replica home and a smaller one of its home in its place, if one will do."""
    there = int(search.flat[slot])
    if home in search.rows[slot // search.width].tolist():
        return False
    mine = search.weight(np.array([slot]))
    candidates = search.on(home)
    candidates = candidates[search.at_home(candidates, np.array(home))]
    weight = search.weight(candidates)
    fits = _harmless(search, home, there, mine - weight) & (weight[0] < mine[0])
    candidates, weight = candidates[fits], weight[:, fits]
    cheapest = np.argsort(weight[0], kind="stable")[:REPLACEMENTS_CHECKED]
    for other in candidates[cheapest].tolist():
        if other // search.width == slot // search.width:
            continue
        if search.valid_one(slot, home) and _may_trade(search, slot, other, there):
            search.move(slot, home)
            search.move(other, there)
            return True
    return False


def _may_trade(search: Search, back: int, out: int, there: int) -> bool:
    """Whether another replica may go where one comes home from."""
    if not search.trade_spreads_one(back, out, there, int(search.flat[out])):
        return False
    return search.valid_one(out, there)


def _harmless(search: Search, home: int, there: int, gained: Floats) -> Mask:
    """(n,) whether the loads of both brokers stay as close to their bands."""
    before = sum(search.excess(b, search.load[:, b, None])[0] for b in (home, there))
    after = search.excess(home, search.load[:, home, None] + gained)
    after = after + search.excess(there, search.load[:, there, None] - gained)
    harmless: Mask = after <= before
    return harmless
