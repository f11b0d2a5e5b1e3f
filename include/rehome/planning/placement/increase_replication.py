"""Higher replication factors: KIP-879's rings, continued from the existing replicas.

docs/decisions/003-rings-and-load.md says why the rings skip branches that are too full.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.rack_spread import NoPlaceError, choose
from rehome.planning.placement.replica_sets import Fullness, Placer
from rehome.planning.placement.ring import Ring


class RingPlacer(Placer):
    """Completes replica sets by one ring per topic. The ring starts where the topic's last
    partition left it and continues from partition to partition. If a partition is not evenly
    spread, or the next broker has no disk space, the spread rule decides first and the ring breaks
    ties.

    :param tree: with brokers in the order of their ids.
    :param tolerance: how much fuller than its siblings a branch may be without being skipped.
    :param seed: start of the pointers that no existing replica determines.
    """

    def __init__(
        self, layout: Layout, tree: RackTree, capacity: Floats, tolerance: float, seed: int
    ) -> None:
        super().__init__(layout, tree, capacity)
        self._tolerance, self._seed = tolerance, seed
        self._rings: dict[int, Ring] = {}
        self._even: Mask = tree.violations_of(np.arange(len(layout.origin)), layout.origin) == 0

    def _choose(
        self, partition: int, tree: RackTree, keep: list[int], replicas: int, free: Mask
    ) -> list[int]:
        ring = self._ring(int(self._layout.arrays.topic_of[partition]))
        origin = _brokers(self._layout.origin[partition])
        turn = _InTurn(ring, self.fullness, self._tolerance, self.weight(partition))
        if self._even[partition] and set(keep) == set(origin):
            with suppress(NoPlaceError):
                return origin + ring.hand_out(
                    tree, origin, replicas - len(origin), free, turn.fuller
                )
        chosen = choose(tree, keep, replicas, free, turn)
        is_new = ring.visit(set(chosen) - set(origin))
        return [broker for broker in chosen if broker not in is_new] + is_new

    def _ring(self, topic: int) -> Ring:
        ring = self._rings.get(topic)
        if ring is None:
            arrays = self._layout.arrays
            first, end = np.searchsorted(arrays.topic_of, [topic, topic + 1])
            tree = self._tree.of(int(first))
            ring = Ring(tree, np.random.default_rng([self._seed, topic]))
            ring.replay(_brokers(row) for row in arrays.rows[first:end])
            self._rings[topic] = ring
        return ring


class _InTurn:
    """The ring's order, but children that are too full come last. A child is too full if it is
    fuller than a sibling by more than the tolerance and by more than one replica of this partition.
    """

    def __init__(self, ring: Ring, fullness: Fullness, tolerance: float, weight: int) -> None:
        self._ring, self._fullness = ring, fullness
        self._tolerance, self._weight = tolerance, weight

    def fuller(self, level: int, node: int, child: int) -> bool:
        """Whether a child of the node is too full."""
        return bool(self._fuller(level, node, child))

    def _fuller(self, level: int, node: int, children: Ints | int) -> Mask:
        limit = self._fullness.of(level, node) * (1 + self._tolerance)
        fuller: Mask = self._fullness.of(level + 1, children, without=self._weight) > limit
        return fuller

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        steps = self._ring.rank(level, node, children, short)
        late = self._fuller(level, node, children)
        return np.where(late, steps + len(steps) + steps.max(initial=0), steps)


def _brokers(row: Rows) -> list[int]:
    brokers: list[int] = row[row != NONE].tolist()
    return brokers
