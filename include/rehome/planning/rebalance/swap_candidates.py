"""Replicas that could be copied instead of others, and limits on the loads of brokers meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.planning.placement.stable_order import stable_order_of_floats
from rehome.planning.search.state import Search


class SwapCandidates:
    """The replicas that stay on each broker, sorted by size.

    :param leader: (P,) the broker that copies are read from; ``zone``: (B,) that each broker
        lies in.
    :param alike: candidates per copy.
    """

    def __init__(self, search: Search, leader: Ints, zone: Ints, alike: int) -> None:
        self._alike = alike
        self._search, self._leader, self._zone = search, leader, zone
        self._origin, self._size = search.origin.reshape(-1), search.weights[0]
        self._even = search.racks.even()
        self._pools: dict[tuple[int, int], tuple[Ints, Floats]] = {}

    def nearest(self, copies: Ints, sizes: Floats, near: bool) -> tuple[Ints, Mask]:
        """(n, alike) candidates on the origins of n copies, nearest to ``sizes`` (n,); and which
        entries are valid.

        :param near: only candidates whose leader is in the copy's zone.
        """
        some = np.zeros((len(copies), self._alike), np.int64)
        real = np.zeros(some.shape, bool)
        zones = self._zone[self._search.flat[copies]].tolist() if near else [NONE] * len(copies)
        half = self._alike // 2
        lookups = zip(self._origin[copies].tolist(), zones, sizes.tolist(), strict=True)
        for i, (source, zone, size) in enumerate(lookups):
            pool, pooled = self._pool(source, zone)
            middle = int(pooled.searchsorted(size))
            mine = pool[max(0, middle - half) : middle + half]
            some[i, : len(mine)], real[i, : len(mine)] = mine, True
        return some, real

    def _pool(self, source: int, zone: int) -> tuple[Ints, Floats]:
        """Replicas that could leave a broker, sorted by size, and their sizes.

        :param zone: of their leaders; NONE = any. Unevenly spread partitions are left out: a move
            would have to make them even.
        """
        if (source, zone) not in self._pools:
            search = self._search
            replicas = search.on(source)
            replicas = replicas[self._origin[replicas] == source]
            partition = replicas // search.width
            suitable = self._size[partition] > 0
            if zone != NONE:
                suitable &= self._zone[self._leader[partition]] == zone
            replicas = replicas[suitable]
            if not self._even:
                partitions = replicas // search.width
                rows = search.rows[partitions]
                replicas = replicas[search.problem.tree.violations_of(partitions, rows) == 0]
            size = self._size.take(replicas // search.width)
            order = stable_order_of_floats(size)
            self._pools[source, zone] = replicas[order], size[order]
        return self._pools[source, zone]


@dataclass
class SwapSlack:
    """Limits on k loads of n brokers, each shared by some exchanges.

    :param broker: (n,) the brokers; a single one applies to all exchanges.
    :param sign: +1 if the brokers receive the exchanged replicas, -1 if they give them.
    :param low, high: (k, n) per resource; ``scale``: one over the share.
    :param widest: (2, n) low and high of bytes, regardless of ``saved``.
    """

    broker: Ints
    sign: int
    low: Floats
    high: Floats
    scale: Floats
    widest: Floats

    def beyond(self, load: Floats) -> Floats:
        """(n, m) distance of m loads (k, n, m) of each broker to these limits, in shares."""
        low, high, scale = (part[:, :, None] for part in (self.low, self.high, self.scale))
        beyond: Floats = (scale * np.maximum(np.maximum(load - high, low - load), 0)).sum(axis=0)
        return beyond

    def of(self, places: Ints) -> SwapSlack:
        """The same for some of the brokers; a single one stays."""
        if len(self.broker) == 1:
            return self
        low, high, scale, widest = (
            part.take(places, axis=1) for part in (self.low, self.high, self.scale, self.widest)
        )
        return SwapSlack(self.broker[places], self.sign, low, high, scale, widest)

    def spend(self, load: Floats, saved: float) -> None:
        """Tighten the limits so that no more bytes are copied than were saved; ``load`` (n,) is
        held now.
        """
        if self.sign > 0:
            self.high[0] = np.minimum(self.widest[1], load + saved)
        else:
            self.low[0] = np.maximum(self.widest[0], load - saved)
