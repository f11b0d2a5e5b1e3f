"""What leaders have to send while a plan is made: copies are read from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.planning.arrays import Floats, Ints
from include.planning.certificate import sources
from include.planning.search import Search

MOST = 1.2
"""What a leader is to send, over what the neediest broker receives. Less costs more moves."""

SPARED = 0.5
"""Part of a broker's bytes that has to be left to choose from."""


@dataclass
class Senders:
    """Books on who sends what, while brokers give replicas up.

    :param leader: (P,) the broker that copies are read from.
    :param size: (P,) bytes of a replica; ``width``: places of a row.
    :param sent: (B,) bytes that each broker is to send so far.
    :param most: bytes beyond which replicas of a leader are not chosen first.
    """

    leader: Ints
    size: Floats
    width: int
    sent: Floats
    most: float

    @classmethod
    def of(cls, search: Search, wanted: Floats) -> Senders:
        """Nothing is sent yet."""
        lack = np.where(search.problem.takes, wanted[0] - search.load[0], 0.0)
        return cls(
            sources(search.problem.layout),
            search.weights[0],
            search.width,
            np.zeros(len(lack)),
            MOST * float(lack.max(initial=0.0)),
        )

    def spared(self, slots: Ints) -> Ints:
        """A broker's slots without those whose leader would send too much: where that leaves
        enough of them.
        """
        partition = slots // self.width
        size = self.size[partition]
        fits = self.sent[self.leader[partition]] + size <= self.most
        return slots[fits] if size[fits].sum() >= SPARED * size.sum() else slots

    def send(self, slots: Ints) -> None:
        """These are given up."""
        partition = slots // self.width
        self.sent += np.bincount(self.leader[partition], self.size[partition], len(self.sent))
