"""KIP-879's rings: each node of the rack tree hands replicas to its children in turn.

Each node has a pointer to one of its children. A new replica goes from the root to the child at the
pointer, the pointer advances to the next child, and the child does the same, down to a broker. A
child that already holds as many replicas of the partition as it can is skipped. So the replicas end
as evenly spread as :class:`~rehome.planning.model.rack_tree.RackTree` demands. Children are
ordered by their lowest broker id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.rack_spread import NoPlaceError

Skipped = Callable[[int, int, int], bool]
"""Level, node and one of its children → whether this child is skipped while there are others."""


class Ring:
    """The pointers of all nodes. Placing replicas advances them. Also a Preference, for ties.

    :param start: random start of the pointers; None = at the first children.
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
        self._children = [[group.tolist() for group in groups] for groups in tree.children]
        self._place_of = [
            place[node].tolist() for place, node in zip(self._place, tree.node, strict=True)
        ]

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        """(n,) steps from the pointer to each child, counted after the ``short`` children have had
        their turns.
        """
        size, first = self._size[level][node], self._next[level][node]
        place = self._place[level + 1][children]
        if short.any():
            first += int(((place[short] - first) % size).max()) + 1
        steps: Floats = ((place - first) % size).astype(float)
        return steps

    def advance_past(self, brokers: Iterable[int]) -> None:
        """Advance the pointers as if replicas had been placed on these brokers in this order."""
        brokers = list(brokers)
        for level, pointers in enumerate(self._next):
            node, place, size = self._node[level], self._place_of[level + 1], self._size[level]
            for broker in brokers:
                pointers[node[broker]] = (place[broker] + 1) % size[node[broker]]

    def replay(self, rows: Iterable[Sequence[int]]) -> None:
        """Advance the pointers past existing partitions, whatever the order of their replicas.

        The order of the first partition's replicas determines the start of the rings.
        """
        for number, row in enumerate(rows):
            if number:
                self.visit(row)
            else:
                self.advance_past(row)

    def hand_out(
        self, tree: RackTree, holders: Sequence[int], more: int, free: Mask, skipped: Skipped
    ) -> list[int]:
        """Choose the brokers of ``more`` further replicas of a partition, one after the other.

        At every level, the child at the pointer is next; a child without a free broker is skipped.
        If the result would not be evenly spread, children are skipped as well that hold more of the
        partition than a sibling that could take it.

        :param tree: of the brokers that may hold the partition, numbered as the ring's.
        :param holders: brokers that hold it, evenly spread.
        :param free: (B,) brokers that may get a new copy.
        :param skipped: further children to skip, as long as there are others.
        :raises NoPlaceError: no broker is free where the replica has to go; the pointers are
            unchanged.
        """
        before = [pointers.copy() for pointers in self._next]
        for skip_fuller in (False, True):
            turn = _Turn(self, tree, holders, more, free, skipped, skip_fuller)
            is_new = turn.brokers()
            if is_new is not None:
                return is_new
            self._next = [pointers.copy() for pointers in before]
        raise NoPlaceError

    def from_here(self, level: int, node: int) -> Iterator[int]:
        """The children of a node, one full round, starting at the pointer."""
        children, first = self._children[level][node], self._next[level][node]
        yield from children[first:]
        yield from children[:first]

    def visit(self, brokers: Collection[int]) -> list[int]:
        """These brokers in the order of the ring; advances the pointers."""
        left, visited = set(brokers), []
        while left:
            broker = self._next_of(left)
            visited.append(broker)
            self.advance_past([broker])
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


class _Turn:
    """The rings' choice for the replicas of one partition, one after the other.

    :param skip_fuller: skip a child that holds more of the partition than a sibling.
    """

    def __init__(
        self,
        ring: Ring,
        tree: RackTree,
        holders: Sequence[int],
        more: int,
        free: Mask,
        skipped: Skipped,
        skip_fuller: bool,
    ) -> None:
        self._ring, self._tree, self._more, self._free = ring, tree, more, free
        self._skipped, self._skip_fuller = skipped, skip_fuller
        self._chosen: list[int] = []
        self._count = [Counter(node[list(holders)].tolist()) for node in tree.node]
        self._shares, _ = tree.shares(0, 0, len(holders) + more)

    def brokers(self) -> list[int] | None:
        """The chosen brokers; None if the result is unevenly spread, or no broker is free."""
        for _ in range(self._more):
            broker = self._descend(0, 0)
            if broker == NONE:
                return None
            self._ring.advance_past([broker])
            self._chosen.append(broker)
            for count, node in zip(self._count, self._tree.node, strict=True):
                count[int(node[broker])] += 1
        return self._chosen if self._skip_fuller or self._even() else None

    def _descend(self, level: int, node: int) -> int:
        for child in self._in_turn(level, node):
            if level == 0 and self._count[1][child] >= self._shares[child][1]:
                return NONE  # however it goes on, it would hold more than its share
            broker = child if level == self._tree.height - 1 else self._descend(level + 1, child)
            if broker != NONE:
                return broker
        return NONE

    def _in_turn(self, level: int, node: int) -> Iterator[int]:
        """In ring order: children with a broker that may hold the partition and does not hold it
        yet.
        """
        count, capacity = self._count[level + 1], self._tree.capacity[level + 1]
        most = self._fewest(level, node) if self._skip_fuller else len(self._free)
        leaf, late = level == self._tree.height - 1, []
        for child in self._ring.from_here(level, node):
            if not count[child] < capacity[child] or count[child] > most:
                continue
            if leaf and not self._free[child]:
                continue
            if self._skipped(level, node, child):
                late.append(child)
            else:
                yield child
        yield from late

    def _fewest(self, level: int, node: int) -> int:
        """The fewest replicas held by any child that could take one more."""
        count, capacity = self._count[level + 1], self._tree.capacity[level + 1]
        parent = self._tree.parent[level + 1]
        mine = [child for child, replicas in count.items() if replicas and parent[child] == node]
        if len(mine) < self._tree.open_children[level][node]:
            return 0
        return min((count[c] for c in mine if count[c] < capacity[c]), default=0)

    def _even(self) -> bool:
        """Whether each node's replicas are spread over its children by the spread rule."""
        for level, nodes in enumerate(self._count[:-1]):
            below, parent = self._count[level + 1], self._tree.parent[level + 1]
            for node, replicas in nodes.items():
                shares, least = self._tree.shares(level, node, replicas)
                mine = {
                    c: child_replicas for c, child_replicas in below.items() if parent[c] == node
                }
                if any(
                    not shares[c][0] <= child_replicas <= shares[c][1]
                    for c, child_replicas in mine.items()
                ):
                    return False
                if sum(shares[c][0] for c in mine) < least:
                    return False
        return True
