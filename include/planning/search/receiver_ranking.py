"""What brokers lack while they are filled, one replica at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from include.domain.array_types import Floats, Ints, Mask


class ReceiverRanking:
    """Ranks n brokers by what a replica more gains each of them, summed over all resources.

    A lack counts squared, so what a replica gains a broker grows with what the broker lacks. Only
    the books of the broker that got a replica change: everything else is computed once.

    :param load: (K, n) what the brokers hold; ``wanted``: what they are filled up to; ``tight``,
        ``high``: what they may hold at first, and at most.
    :param scale: (K, n) one over the share, 0 where a resource has no band.
    :param value: (K,) what a lack of each resource counts.
    :param picky: how much brokers that lack little come before those that lack much.
    :param favour: (n,) what a gain of each broker counts beside the others'.
    :ivar rows: (k,) the resources with bands: all others are left out.
    :ivar tight, high: (k, n) what may still be added.
    """

    def __init__(
        self,
        *,
        load: Floats,
        wanted: Floats,
        tight: Floats,
        high: Floats,
        scale: Floats,
        value: Sequence[float],
        picky: float,
        favour: Floats,
    ) -> None:
        self.rows: Ints = np.flatnonzero(scale.any(axis=1))
        rows = self.rows
        self.tight, self.high = tight[rows] - load[rows], high[rows] - load[rows]
        self._lack = ((wanted - load)[rows] * scale[rows]).T.tolist()
        self._scale = scale[rows].T.tolist()
        self._value = [value[row] for row in rows.tolist()]
        self._picky, self._favour = picky, favour.tolist()
        self._pull = np.zeros(self.tight.shape)
        for place in range(len(favour)):
            self._weigh(place)

    def gain(self, weight: Sequence[float]) -> Floats:
        """(n,) what a replica of this weight (k,) gains each broker."""
        gain: Floats = self._pull[0] * weight[0]
        for pull, part in zip(self._pull[1:], weight[1:], strict=True):
            gain += pull * part
        return gain

    @staticmethod
    def fits(headroom: Floats, weight: Sequence[float]) -> Mask:
        """(n,) brokers with this much room (k, n) for a replica of this weight."""
        fits: Mask = headroom[0] >= weight[0]
        for more, part in zip(headroom[1:], weight[1:], strict=True):
            fits &= more >= part
        return fits

    def fits_one(self, place: int, weight: Sequence[float]) -> bool:
        """Whether a broker, by its place, has room for a replica at first."""
        return all(more >= part for more, part in zip(self.tight[:, place], weight, strict=True))

    def add(self, place: int, weight: Sequence[float]) -> None:
        """A broker, by its place, got a replica of this weight."""
        lack, scale = self._lack[place], self._scale[place]
        for row, part in enumerate(weight):
            lack[row] -= part * scale[row]
            self.tight[row, place] -= part
            self.high[row, place] -= part
        self._weigh(place)

    def _weigh(self, place: int) -> None:
        lack, scale = self._lack[place], self._scale[place]
        need = [part * value for part, value in zip(lack, self._value, strict=True)]
        whole = sum(a * b for a, b in zip(need, lack, strict=True))
        factor = self._favour[place] / max(whole, 1e-12) ** self._picky
        for row, part in enumerate(need):
            self._pull[row, place] = part * scale[row] * factor
