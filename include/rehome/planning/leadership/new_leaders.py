"""New leaders for partitions that lose theirs, as even by share as existing replicas allow.

Each partition can be led by a few brokers, and each broker should lead its share. This is a
semi-matching with convex costs. It is optimal when no chain of leader changes lowers the cost
(Harvey, Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs, 2006).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask, Rows

_LEAST_GAIN = 1e-9


def take_over(rows: Rows, able: Mask, led: Ints, share: Floats) -> Ints:
    """(n,) the position in each row that is to lead, such that the sum over brokers of (partitions
    led)² / share is minimal.

    :param rows: (n, R) dense broker indexes.
    :param able: (n, R) positions that may lead; at least one per row, on a broker with a share.
    :param led: (B,) other partitions that each broker leads.
    :param share: (B,) relative part that each broker is to lead; above 0 where one may lead.
    """
    options = [
        [
            (broker, position)
            for position, (broker, may) in enumerate(zip(row, can, strict=True))
            if may
        ]
        for row, can in zip(rows.tolist(), able.tolist(), strict=True)
    ]
    leaders = _Leaders([dict(choice) for choice in options], led, share)
    leaders.even_out()
    positions = [of[leader] for of, leader in zip(map(dict, options), leaders.of, strict=True)]
    return np.array(positions, np.int64)


class _Leaders:
    """The leader of each partition.

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
        """Cost of one more partition."""
        return float((2 * self._count[broker] + 1) / self._share[broker])

    def _leaving(self, broker: int) -> float:
        """Saving by one partition less."""
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

        Brokers reached from one that cannot hand anything on are done as well: each of their
        targets would have been a target for that broker too.
        """
        settled: set[int] = set()
        while True:
            givers = [b for b, held in self._held.items() if held and b not in settled]
            if not givers:
                return
            giver = max(givers, key=lambda b: (self._leaving(b), -b))
            reached = self._reach(giver, settled)
            taker = min(reached, key=lambda b: (self._joining(b), b))
            if taker != giver and self._joining(taker) < self._leaving(giver) - _LEAST_GAIN:
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
