"""KIP-879's rings: each node of the rack tree hands replicas to its children in turn.

A node points at one of its children. A new replica goes from the root to the child that is
pointed at, the pointer moves on to the next child, and the child does the same, down to a
broker. A child that already holds as many replicas of the partition as it can is passed over,
so the replicas end as evenly spread as :class:`~include.planning.racks.RackTree` demands.
Children stand on a ring in the order of the tree: that of their lowest broker id.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from include.planning.arrays import Floats, Ints, Mask
from include.planning.racks import RackTree


class Ring:
    """The pointers of all nodes, moved on by what is placed. A Preference among equals.

    :param start: where the pointers stand at first: anywhere by this generator, or at the
        first children without one.
    """

    def __init__(self, tree: RackTree, start: np.random.Generator | None = None) -> None:
        self._place = [np.zeros(len(room), np.int64) for room in tree.capacity]
        self._size: list[list[int]] = []
        self._next: list[list[int]] = []
        for level, groups in enumerate(tree.children):
            for children in groups:
                self._place[level + 1][children] = np.arange(len(children))
            size = [len(children) for children in groups]
            self._size.append(size)
            self._next.append([0] * len(size) if start is None else start.integers(size).tolist())
        self._node: list[list[int]] = [node.tolist() for node in tree.node]
        self._place_of = [
            place[node].tolist() for place, node in zip(self._place, tree.node, strict=True)
        ]

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        """(n,) steps to each child; from where the pointer will stand once ``short`` ones have
        had theirs.
        """
        size, first = self._size[level][node], self._next[level][node]
        place = self._place[level + 1][children]
        if short.any():
            first += int(((place[short] - first) % size).max()) + 1
        steps: Floats = ((place - first) % size).astype(float)
        return steps

    def pass_by(self, brokers: Iterable[int], but: Collection[int] = ()) -> None:
        """Point behind these brokers, at every node above them, as if placed in this order.

        :param but: brokers; the nodes above these go on pointing where they do.
        """
        brokers = list(brokers)
        for level, pointers in enumerate(self._next):
            node, place, size = self._node[level], self._place_of[level + 1], self._size[level]
            fixed = {node[broker] for broker in but}
            for broker in brokers:
                if node[broker] not in fixed:
                    pointers[node[broker]] = (place[broker] + 1) % size[node[broker]]

    def replay(self, rows: Iterable[Sequence[int]]) -> None:
        """Stand where these partitions leave the rings, in whatever order their replicas are.

        The first one says by its order where the rings began.
        """
        for number, row in enumerate(rows):
            if number:
                self.visit(row)
            else:
                self.pass_by(row)

    def after(self, brokers: Iterable[int]) -> Ring:
        """A ring of its own that stands behind these brokers, and elsewhere as this one."""
        ring = copy.copy(self)
        ring._next = [pointers.copy() for pointers in self._next]
        ring.pass_by(brokers)
        return ring

    def visit(self, brokers: Collection[int]) -> list[int]:
        """These brokers in the order in which the ring comes to them; moves the pointers on."""
        left, visited = set(brokers), []
        while left:
            broker = self._next_of(left)
            visited.append(broker)
            self.pass_by([broker])
            left.remove(broker)
        return visited

    def _next_of(self, brokers: Collection[int]) -> int:
        for level, pointers in enumerate(self._next):
            node = self._node[level][next(iter(brokers))]
            place, size, first = self._place_of[level + 1], self._size[level][node], pointers[node]
            steps = {broker: (place[broker] - first) % size for broker in brokers}
            nearest = min(steps.values())
            brokers = [broker for broker in brokers if steps[broker] == nearest]
        return next(iter(brokers))
