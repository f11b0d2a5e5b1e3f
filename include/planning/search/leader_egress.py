"""What leaders have to send while a plan is made: copies are read from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.domain.array_types import Floats, Ints
from include.planning.model.layout import sources
from include.planning.search.state import Search

MOST_EGRESS = 1.2
"""What a leader is to send, over what the neediest broker receives. Less costs more moves."""

SPARED = 0.5
"""Part of a broker's bytes that has to be left to choose from."""

NEARER = 0.15
"""Part of its size by which a replica may be smaller than another one to leave in its place, for
being led in the broker's own zone: most copies stay in it. More costs more moves.
"""


@dataclass
class LeaderEgress:
    """Books on who sends what, while brokers give replicas up.

    :param leader: (P,) the broker that copies are read from; ``zone``: (B,) that each broker
        lies in.
    :param size: (P,) bytes of a replica; ``width``: places of a row.
    :param sent: (B,) bytes that each broker is to send so far.
    :param most: bytes beyond which replicas of a leader are not chosen first.
    """

    leader: Ints
    zone: Ints
    size: Floats
    width: int
    sent: Floats
    most: float

    @classmethod
    def of(cls, search: Search, wanted: Floats) -> LeaderEgress:
        """Nothing is sent yet."""
        problem = search.problem
        lack = np.where(problem.takes, wanted[0] - search.load[0], 0.0)
        return cls(
            sources(problem.layout),
            problem.tree.node[1] if problem.tree.height > 1 else np.zeros(len(lack), np.int64),
            search.weights[0],
            search.width,
            np.zeros(len(lack)),
            MOST_EGRESS * float(lack.max(initial=0.0)),
        )

    def spared(self, replicas: Ints) -> Ints:
        """A broker's slots without those whose leader would send too much: where that leaves
        enough of them.
        """
        partition = replicas // self.width
        size = self.size[partition]
        fits = self.sent[self.leader[partition]] + size <= self.most
        return replicas[fits] if size[fits].sum() >= SPARED * size.sum() else replicas

    def send(self, replicas: Ints) -> None:
        """These are given up."""
        partition = replicas // self.width
        self.sent += np.bincount(self.leader[partition], self.size[partition], len(self.sent))

    def choose(
        self, replicas: Ints, broker: int, left_bytes: float, enough_bytes: float
    ) -> tuple[list[int], float]:
        """Have a broker give up replicas, each that fits into the bytes left to give up, until no
        more than enough are left: large ones and such as are led in its own zone first, those
        last whose leader would send too much.

        :returns: places of the chosen ones among the slots, and the bytes left.
        """
        partition = replicas // self.width
        leader, size = self.leader[partition], self.size[partition]
        near = self.zone[leader] == self.zone[broker]
        order: list[int] = np.argsort(-size * (1 + NEARER * near), kind="stable").tolist()
        leaders, sizes = leader.tolist(), size.tolist()
        chosen: list[int] = []
        for most in (self.most, np.inf):
            waiting: list[int] = []
            for place in order:
                if left_bytes <= enough_bytes:
                    break
                if sizes[place] > left_bytes:
                    continue
                if self.sent[leaders[place]] + sizes[place] > most:
                    waiting.append(place)
                    continue
                chosen.append(place)
                left_bytes -= sizes[place]
                self.sent[leaders[place]] += sizes[place]
            order = waiting
        return chosen, left_bytes
