"""Replace copies by smaller ones: undo a move, and move a smaller replica of the same broker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import Floats, Mask
from rehome.planning.search.state import Search


@dataclass(frozen=True, slots=True)
class ExchangeOptions:
    """How long smaller replicas are looked for.

    :param checked: candidates that are checked per copy, the cheapest first.
    :param rounds: the most rounds.
    """

    checked: int = 32
    rounds: int = 4


EXCHANGE = ExchangeOptions()


def exchange_copies(search: Search, most: int) -> None:
    """Replace copies by smaller ones, largest copies first, if no band is met less well then.

    :param most: copies that are tried per round. If a round tries all, further rounds follow while
        they help.
    """
    origin = search.origin.reshape(-1)
    for _ in range(EXCHANGE.rounds):
        copies = search.copies()
        copies = copies[(search.problem.gives & ~search.problem.leaving)[origin[copies]]]
        size = search.weights[0].take(copies // search.width)
        order = copies[np.argsort(-size, kind="stable")][:most].tolist()
        replaced = sum(_replace(search, replica, int(origin[replica])) for replica in order)
        if not replaced or len(copies) > most:
            return


def _replace(search: Search, replica: int, origin: int) -> bool:
    """Undo one move and move a smaller replica of the same origin instead, if there is a
    valid one.
    """
    there = int(search.flat[replica])
    if search.work.spent():
        return False
    if origin in search.rows[replica // search.width].tolist():
        return False
    mine = search.weight(np.array([replica]))
    candidates = search.on(origin)
    candidates = candidates[search.held_before(candidates, np.array(origin))]
    search.work.score(len(candidates))
    weight = search.weight(candidates)
    fits = _harmless(search, origin, there, mine - weight) & (weight[0] < mine[0])
    candidates, weight = candidates[fits], weight[:, fits]
    cheapest = np.argsort(weight[0], kind="stable")[: EXCHANGE.checked]
    for other in candidates[cheapest].tolist():
        if other // search.width == replica // search.width:
            continue
        if search.valid_one(replica, origin) and _may_trade(search, replica, other, there):
            search.move(replica, origin)
            search.move(other, there)
            return True
    return False


def _may_trade(search: Search, back: int, out: int, there: int) -> bool:
    """Whether replica ``out`` may go to the broker that ``back`` returns from."""
    if not search.trade_spreads_one(back, out, there, int(search.flat[out])):
        return False
    return search.valid_one(out, there)


def _harmless(search: Search, origin: int, there: int, gained: Floats) -> Mask:
    """(n,) whether the loads of both brokers stay as close to their bands."""
    before = sum(search.excess(b, search.load[:, b, None])[0] for b in (origin, there))
    after = search.excess(origin, search.load[:, origin, None] + gained)
    after = after + search.excess(there, search.load[:, there, None] - gained)
    harmless: Mask = after <= before
    return harmless
