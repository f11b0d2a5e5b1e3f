"""Bytes that each leader has to send: copies are read from leaders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import Floats, Ints
from rehome.planning.model.layout import sources
from rehome.planning.search.state import Search


@dataclass(frozen=True, slots=True)
class LeaderEgressOptions:
    """How replicas are preferred by their leaders.

    :param most: limit on what a leader sends, relative to what the largest receiver gets. A lower
        limit costs more moves.
    :param left: fraction of a broker's bytes that must remain as candidates.
    :param of_zone: how much smaller, as a fraction, a replica led in the broker's own zone may be
        and still be preferred: most copies stay in their zone. A higher value costs more moves.
    """

    most: float = 1.2
    left: float = 0.5
    of_zone: float = 0.15


LEADER_EGRESS = LeaderEgressOptions()


@dataclass
class LeaderEgress:
    """Tracks the bytes that each leader sends while brokers give replicas up.

    :param leader: (P,) the broker that copies are read from; ``zone``: (B,) that each broker
        lies in.
    :param size: (P,) bytes of a replica; ``width``: positions of a row.
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
    def of(cls, search: Search, wanted_load: Floats) -> LeaderEgress:
        """Nothing is sent yet."""
        problem = search.problem
        lack = np.where(problem.takes, wanted_load[0] - search.load[0], 0.0)
        return cls(
            sources(problem.layout),
            problem.tree.node[1] if problem.tree.height > 1 else np.zeros(len(lack), np.int64),
            search.weights[0],
            search.width,
            np.zeros(len(lack)),
            LEADER_EGRESS.most * float(lack.max(initial=0.0)),
        )

    def without_busy_leaders(self, replicas: Ints) -> Ints:
        """A broker's replicas without those whose leader would send too much, if enough remain."""
        partition = replicas // self.width
        size = self.size[partition]
        fits = self.sent[self.leader[partition]] + size <= self.most
        return replicas[fits] if size[fits].sum() >= LEADER_EGRESS.left * size.sum() else replicas

    def send(self, replicas: Ints) -> None:
        """Record replicas that are given up."""
        partition = replicas // self.width
        self.sent += np.bincount(self.leader[partition], self.size[partition], len(self.sent))

    def choose(
        self, replicas: Ints, broker: int, left_bytes: float, enough_bytes: float
    ) -> tuple[list[int], float]:
        """Choose replicas of a broker to give up, each that fits into the remaining bytes, until at
        most ``enough_bytes`` remain. Large ones and those led in the broker's zone come first;
        those whose leader would send too much come last.

        :returns: indexes of the chosen ones among the replicas, and the bytes left.
        """
        partition = replicas // self.width
        leader, size = self.leader[partition], self.size[partition]
        near = self.zone[leader] == self.zone[broker]
        order: list[int] = np.argsort(
            -size * (1 + LEADER_EGRESS.of_zone * near), kind="stable"
        ).tolist()
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
