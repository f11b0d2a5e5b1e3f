"""Ranking of receivers while brokers are filled, one replica at a time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import ge

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask


class ReceiverRanking:
    """Ranks n brokers by the gain of one more replica, summed over resources.

    A deficit counts squared, so the gain grows with the deficit. Only the numbers of the broker
    that got a replica change; everything else is computed once.

    :param load: (K, n) what the brokers hold; ``wanted_load``: what they are filled up to;
        ``tight``, ``high``: limits at first, and at last.
    :param scale: (K, n) 1 / share, 0 where a resource has no band.
    :param value: (K,) weight of a deficit in each resource.
    :param picky: how strongly brokers with a small deficit are preferred to those with a large one.
    :param favour: (n,) weight of each broker's gain.
    :ivar rows: (k,) the resources with bands; others are ignored.
    :ivar tight, high: (k, n) what may still be added.
    """

    def __init__(
        self,
        *,
        load: Floats,
        wanted_load: Floats,
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
        self._lack = ((wanted_load - load)[rows] * scale[rows]).T.tolist()
        self._scale = scale[rows].T.tolist()
        self._value = [value[row] for row in rows.tolist()]
        self._picky, self._favour = picky, favour.tolist()
        self._pull = np.zeros(self.tight.shape)
        self._gain, self._part = np.empty(len(favour)), np.empty(len(favour))
        self._room: list[list[float]] = self.tight.T.tolist()
        for index in range(len(favour)):
            self._weigh(index)

    def gain(self, weight: Sequence[float]) -> Floats:
        """(n,) gain of each broker by a replica of this load (k,); until the next call."""
        gain, part = self._gain, self._part
        np.multiply(self._pull[0], weight[0], out=gain)
        for row in range(1, len(weight)):
            np.multiply(self._pull[row], weight[row], out=part)
            np.add(gain, part, out=gain)
        return gain

    @staticmethod
    def fits(headroom: Floats, weight: Sequence[float]) -> Mask:
        """(n,) brokers whose headroom (k, n) suffices for a replica of this load."""
        fits: Mask = headroom[0] >= weight[0]
        for more, part in zip(headroom[1:], weight[1:], strict=True):
            fits &= more >= part
        return fits

    def fits_one(self, index: int, weight: Sequence[float]) -> bool:
        """Whether the broker at an index can take a replica within the first limits."""
        return all(map(ge, self._room[index], weight))

    def add(self, index: int, weight: Sequence[float]) -> None:
        """The broker at an index got a replica of this load."""
        lack, scale, room = self._lack[index], self._scale[index], self._room[index]
        for row, part in enumerate(weight):
            lack[row] -= part * scale[row]
            room[row] -= part
            self.tight[row, index] = room[row]
            self.high[row, index] -= part
        self._weigh(index)

    def _weigh(self, index: int) -> None:
        lack, scale = self._lack[index], self._scale[index]
        whole, needs = 0.0, []
        for part, value in zip(lack, self._value, strict=True):
            need = part * value
            needs.append(need)
            whole += need * part
        factor = self._favour[index] / max(whole, 1e-12) ** self._picky
        for row, need in enumerate(needs):
            self._pull[row, index] = need * scale[row] * factor
