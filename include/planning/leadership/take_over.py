"""Who leads in the place of others: as even by share as the replicas that exist allow.

Each partition is to be led by one of a few brokers, and each broker should lead its share. This is
a semi-matching with convex costs: it is optimal when no chain of changes, from a broker to another
one, lowers the cost (Harvey, Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs, 2006).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from include.domain.array_types import Floats, Ints, Mask, Rows

LEAST_GAIN = 1e-9


def take_over(rows: Rows, able: Mask, led: Ints, share: Floats) -> Ints:
    """(n,) the place in each row whose broker is to lead, so that the sum over brokers of
    (partitions led)² / share is the least possible.

    :param rows: (n, R) dense broker indexes.
    :param able: (n, R) slots that may lead; at least one of each row, on a broker with a share.
    :param led: (B,) partitions that each broker leads beside these.
    :param share: (B,) relative part that each broker is to lead; above 0 where one may lead.
    """
    options = [
        [(broker, place) for place, (broker, may) in enumerate(zip(row, can, strict=True)) if may]
        for row, can in zip(rows.tolist(), able.tolist(), strict=True)
    ]
    leaders = _Leaders([dict(choice) for choice in options], led, share)
    leaders.even_out()
    places = [of[leader] for of, leader in zip(map(dict, options), leaders.of, strict=True)]
    return np.array(places, np.int64)


class _Leaders:
    """Who leads each partition.

    :ivar of: the leader of each.
    """

    def __init__(self, options: list[dict[int, int]], led: Ints, share: Floats) -> None:
        self._options, self._share = options, share.tolist()
        self._count: list[int] = led.tolist()
        self.of = [-1] * len(options)
        self._held: dict[int, set[int]] = {}
        for partition in sorted(range(len(options)), key=lambda p: (len(options[p]), p)):
            self._give(partition, min(options[partition], key=lambda b: (self._joining(b), b)))

    def _joining(self, broker: int) -> float:
        """What one more partition costs."""
        return float((2 * self._count[broker] + 1) / self._share[broker])

    def _leaving(self, broker: int) -> float:
        """What one partition less saves."""
        return float((2 * self._count[broker] - 1) / self._share[broker])

    def _give(self, partition: int, broker: int) -> None:
        old = self.of[partition]
        if old >= 0:
            self._held[old].discard(partition)
            self._count[old] -= 1
        self.of[partition] = broker
        self._held.setdefault(broker, set()).add(partition)
        self._count[broker] += 1

    def even_out(self) -> None:
        """Change leaders along chains, until no chain lowers the cost.

        Brokers that are reached from one that cannot give are settled: whatever they could give
        to would have been a place for its partition too.
        """
        settled: set[int] = set()
        while True:
            givers = [b for b, held in self._held.items() if held and b not in settled]
            if not givers:
                return
            giver = max(givers, key=lambda b: (self._leaving(b), -b))
            reached = self._reach(giver, settled)
            taker = min(reached, key=lambda b: (self._joining(b), b))
            if taker != giver and self._joining(taker) < self._leaving(giver) - LEAST_GAIN:
                self._pass_along(reached, taker)
            else:
                settled.update(reached)

    def _reach(self, giver: int, settled: set[int]) -> dict[int, tuple[int, int] | None]:
        """Brokers that a chain of changes leads to, each with the partition it would get and the
        broker that it comes from.
        """
        reached: dict[int, tuple[int, int] | None] = {giver: None}
        waiting = deque([giver])
        while waiting:
            broker = waiting.popleft()
            for partition in sorted(self._held.get(broker, ())):
                for other in self._options[partition]:
                    if other not in reached and other not in settled:
                        reached[other] = partition, broker
                        waiting.append(other)
        return reached

    def _pass_along(self, reached: dict[int, tuple[int, int] | None], taker: int) -> None:
        step = reached[taker]
        while step is not None:
            partition, broker = step
            self._give(partition, taker)
            taker, step = broker, reached[broker]
