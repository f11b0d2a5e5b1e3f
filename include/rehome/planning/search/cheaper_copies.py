"""Replace copies by smaller ones: undo a move, and move a smaller replica of the same broker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.planning.placement.stable_order import stable_order_of_floats
from rehome.planning.search.broker_shed import BYTES_ROW
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
    origin, exchange = search.origin.reshape(-1), _Exchange(search)
    for _ in range(EXCHANGE.rounds):
        copies = search.copies()
        copies = copies[(search.problem.gives & ~search.problem.leaving)[origin[copies]]]
        # A repair of racks may have brought a copy to a broker that receives no others.
        copies = copies[search.problem.takes[search.holders(copies)]]
        size = search.weights[BYTES_ROW].take(copies // search.width)
        order = copies[stable_order_of_floats(-size)][:most].tolist()
        replaced = sum(exchange.replace(replica, int(origin[replica])) for replica in order)
        if not replaced or len(copies) > most:
            return


class _Exchange:
    """Replaces single copies; knows what each broker could give, and how many bytes it could take
    and lose within its band, until it changes.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._replicas_of: dict[int, tuple[Ints, Floats]] = {}
        self._excess: list[float] = search.excess(slice(None), search.load).tolist()
        self._load: list[float] = search.load[BYTES_ROW].tolist()
        self._low, self._high, self._scale = (
            side[BYTES_ROW].tolist() for side in (search.low, search.high, search.scale)
        )

    def replace(self, replica: int, origin: int) -> bool:
        """Undo one move and move a smaller replica of the same origin instead, if there is a valid
        one.
        """
        search, width = self._search, self._search.width
        there = int(search.flat[replica])
        if search.work.is_spent():
            return False
        if origin in search.rows[replica // width].tolist():
            return False
        candidates, size = self._of(origin)
        search.work.score(len(candidates))
        mine = search.weights[:, replica // width]
        bytes_back = mine[BYTES_ROW] - size
        near = np.flatnonzero((bytes_back > 0) & (bytes_back <= self._room(origin, there)))
        if not len(near):
            return False
        near = candidates[near[np.argsort(size[near], kind="stable")]]
        fits = _harmless(search, origin, there, mine[:, None] - search.weight(near))
        for other in near[np.flatnonzero(fits)[: EXCHANGE.checked]].tolist():
            if other // width == replica // width:
                continue
            if search.valid_one(replica, origin) and _may_trade(search, replica, other, there):
                search.move(replica, origin)
                search.move(other, there)
                self._note_change(origin, there)
                return True
        return False

    def _of(self, broker: int) -> tuple[Ints, Floats]:
        """The replicas that a broker holds as in the snapshot, and their sizes."""
        if broker not in self._replicas_of:
            search = self._search
            replicas = search.on(broker)
            stayed = search.origin.reshape(-1).take(replicas) == broker
            other = np.flatnonzero(~stayed)
            stayed[other] = search.held_before(replicas[other], np.array(broker))
            replicas = replicas[stayed]
            self._replicas_of[broker] = (
                replicas,
                search.weights[BYTES_ROW].take(replicas // search.width),
            )
        return self._replicas_of[broker]

    def _room(self, origin: int, there: int) -> float:
        """The most bytes that ``origin`` may get back from ``there``: with more, there is more
        excess of bytes alone than of all resources now. One byte more, for rounding.
        """
        room, excess = np.inf, self._excess[origin] + self._excess[there]
        if scale := self._scale[origin]:
            room = self._high[origin] - self._load[origin] + excess / scale
        if scale := self._scale[there]:
            room = min(room, self._load[there] - self._low[there] + excess / scale)
        return room + 1.0

    def _note_change(self, *brokers: int) -> None:
        for broker in brokers:
            self._replicas_of.pop(broker, None)
            here, load = np.array([broker]), self._search.load[:, [broker]]
            self._excess[broker] = float(self._search.excess(here, load)[0])
            self._load[broker] = float(load[BYTES_ROW, 0])


def _may_trade(search: Search, back: int, out: int, there: int) -> bool:
    """Whether replica ``out`` may go to the broker that ``back`` returns from."""
    if not search.trade_spreads_one(back, out, there, int(search.flat[out])):
        return False
    return search.valid_one(out, there)


def _harmless(search: Search, origin: int, there: int, gained: Floats) -> Mask:
    """(n,) whether the loads of both brokers stay as close to their bands."""
    none = np.zeros((len(gained), 1))
    before = _excess(search, origin, none) + _excess(search, there, none)
    after = _excess(search, origin, gained)
    after += _excess(search, there, -gained)
    harmless: Mask = after <= before
    return harmless


def _excess(search: Search, broker: int, more: Floats) -> Floats:
    """(n,) excess of a broker with each of these loads (K, n) in addition."""
    excess = np.zeros(more.shape[1])
    for row in np.flatnonzero(search.scale[:, broker]).tolist():
        load = more[row] + search.load[row, broker]
        outside = np.maximum(load - search.high[row, broker], search.low[row, broker] - load)
        np.maximum(outside, 0, out=outside)
        outside *= search.scale[row, broker]
        excess += outside
    return excess
