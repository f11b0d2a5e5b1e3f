"""KIP-879's rings: each node of the rack tree hands replicas to its children in turn.

Each node has a pointer to one of its children. A new replica goes from the root to the child at the
pointer, the pointer advances to the next child, and the child does the same, down to a broker. A
child that already holds as many replicas of the partition as it can is skipped. So the replicas end
as evenly spread as :class:`~rehome.planning.model.rack_tree.RackTree` demands. Children are
ordered by their lowest broker id.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.one_more import Opening
from rehome.planning.placement.rack_spread import Free, NoPlaceError, Preference

Skipped = Callable[[int, int, int], bool]
"""Level, node and one of its children → whether this child is skipped while there are others."""


class Ring(Preference):
    """The pointers of all nodes. Placing replicas advances them. As a Preference, it
    breaks ties.

    :param start: random start of the pointers; None = at the first children.
    :ivar pointers: per level, per node: the place of the child whose turn it is.
    """

    def __init__(self, tree: RackTree, start: np.random.Generator | None = None) -> None:
        lists = tree.lists
        self._node, self._nodes, self._size = lists.node, tree.node, lists.size
        self._children = lists.children
        self._place, self._place_of = lists.place, lists.place_of
        self.pointers: list[list[int]] = [
            [0] * len(size) if start is None else start.integers(size).tolist()
            for size in self._size
        ]
        self._wheels = list(
            zip(self._node, self._place_of[1:], self._size, self.pointers, strict=False)
        )

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        """(n,) steps from the pointer to each child, counted after the ``short`` children have had
        their turns.
        """
        size, first = self._size[level][node], self.pointers[level][node]
        place = self._place[level + 1][children]
        if short.any():
            first += int(((place[short] - first) % size).max()) + 1
        steps: Floats = ((place - first) % size).astype(float)
        return steps

    def in_turn(self, level: int, node: int) -> list[int]:
        """All children of a node, in the order of their turns."""
        children, first = self._children[level][node], self.pointers[level][node]
        return children[first:] + children[:first]

    def advance_past(self, brokers: Iterable[int]) -> None:
        """Advance the pointers as if replicas had been placed on these brokers in this order."""
        for broker in brokers:
            self.advance(broker)

    def advance(self, broker: int) -> None:
        """Advance the pointers as if a replica had been placed on this broker."""
        for node, place, size, pointers in self._wheels:
            at = node[broker]
            pointers[at] = (place[broker] + 1) % size[at]

    def replay(self, rows: Rows) -> None:
        """Advance the pointers past existing partitions, whatever the order of their replicas.

        The order of the first partition's replicas determines the start of the rings.

        :param rows: (n, R) brokers, padded with -1.
        """
        self.advance_past(_brokers(rows[0].tolist()) if len(rows) else ())
        rest = rows[1:].copy()
        for at in range(1, rows.shape[1]):  # a broker that is named twice counts once
            rest[(rows[1:, :at] == rows[1:, at : at + 1]).any(axis=1), at] = NONE
        self._visit_root(rest)
        for level in range(1, len(self.pointers)):
            self._visit_level(level, rest)

    def _visit_root(self, rows: Rows) -> None:
        pointer, size = self.pointers[0][0], self._size[0][0]
        for places in self._places(1, rows).tolist():
            pointer = _pointer_after(pointer, size, places)
        self.pointers[0][0] = pointer

    def _visit_level(self, level: int, rows: Rows) -> None:
        """Below the root, a single replica of a partition leaves the pointer of its node behind
        itself, wherever it was: only what comes after the last one of those depends on the turns.
        """
        pointers, size = self.pointers[level], self._size[level]
        node = np.where(rows == NONE, NONE, self._nodes[level][rows])
        alone = ((node[:, :, None] == node[:, None]).sum(axis=2) == 1) & (rows != NONE)
        row, at = np.nonzero(alone)
        last, after = np.full(len(size), -1), np.array(pointers)
        last[node[row, at]] = row  # of equal indexes, the last one is assigned
        after[node[row, at]] = self._place[level + 1][self._nodes[level + 1][rows[row, at]]] + 1
        pointers[:] = (after % size).tolist()
        later = (node != NONE) & ~alone & (np.arange(len(rows))[:, None] > last[node])
        for number in np.flatnonzero(later.any(axis=1)).tolist():
            for one in set(node[number, later[number]].tolist()):
                (places,) = self._places(level + 1, rows[number, node[number] == one][None])
                pointers[one] = _pointer_after(pointers[one], size[one], places.tolist())

    def _places(self, level: int, rows: Rows) -> Ints:
        """(n, R) the places of the nodes of a level that brokers lie in, sorted; padded with -1."""
        place = self._place[level][self._nodes[level][rows]]
        return np.sort(np.where(rows == NONE, NONE, place), axis=1)

    def hand_out(
        self, tree: RackTree, holders: Sequence[int], more: int, free: Free, skipped: Skipped
    ) -> list[int]:
        """Choose the brokers of ``more`` further replicas of a partition, one after the other.

        At every level, the child at the pointer is next; a child without a free broker is skipped.
        If the result would not be evenly spread, children are skipped as well that hold more of the
        partition than a sibling that could take it.

        :param tree: of the brokers that may hold the partition, numbered as the ring's.
        :param holders: brokers that hold it, evenly spread.
        :param free: (B,) brokers that may get a new copy; ``holders`` get none in any case.
        :param skipped: further children to skip, as long as there are others.
        :raises NoPlaceError: no broker is free where the replica has to go; the pointers are
            unchanged.
        """
        before = [pointers.copy() for pointers in self.pointers]
        # of one, the first in turn that leaves the partition even is the second attempt's
        for skip_fuller in (False, True) if more > 1 else (True,):
            turn = _Turn(self, tree, holders, more, free, skipped, skip_fuller=skip_fuller)
            is_new = turn.brokers()
            if is_new is not None:
                return is_new
            for pointers, old in zip(self.pointers, before, strict=True):
                pointers[:] = old
        raise NoPlaceError

    def hand_out_one(
        self, opening: Opening, holders: Sequence[int], free: Free, skipped: Skipped
    ) -> int:
        """The same of a single replica: the broker, or NONE where none is free at the end of the
        way down.

        :param opening: what is open below the root; ``holders`` may be unevenly spread.
        """
        node = 0
        for level, pointers in enumerate(self.pointers):
            if level:
                opening = opening.below(node)
            if opening.only != NONE:
                node = opening.only
                continue
            children, late = opening.children, NONE
            leaf, first = level == len(self.pointers) - 1, pointers[node]
            for turn in range(first - len(children), first):  # a full round, from the pointer on
                child = children[turn]
                if child == NONE or (leaf and (child in holders or not free[child])):
                    continue
                if not skipped(level, node, child):
                    break
                late = child if late == NONE else late
            else:
                child = late
            if child == NONE:
                return NONE
            node = child
        self.advance(node)
        return node

    def visit(self, brokers: Collection[int]) -> list[int]:
        """These brokers in the order of the ring; advances the pointers."""
        left, visited = list(dict.fromkeys(brokers)), []
        while left:
            broker = self._next_of(left)
            visited.append(broker)
            self.advance(broker)
            left.remove(broker)
        return visited

    def _next_of(self, brokers: list[int]) -> int:
        for level, pointers in enumerate(self.pointers):
            if len(brokers) == 1:
                break
            node = self._node[level][brokers[0]]
            place, size, first = self._place_of[level + 1], self._size[level][node], pointers[node]
            steps = [(place[broker] - first) % size for broker in brokers]
            nearest = min(steps)
            brokers = [b for b, step in zip(brokers, steps, strict=True) if step == nearest]
        return brokers[0]


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
        free: Free,
        skipped: Skipped,
        *,
        skip_fuller: bool,
    ) -> None:
        self._ring, self._tree, self._lists = ring, tree, tree.lists
        self._more, self._free = more, free
        self._skipped, self._skip_fuller = skipped, skip_fuller
        self._chosen: list[int] = []
        self._count: list[dict[int, int]] = []
        for node in self._lists.node:
            count: dict[int, int] = {}
            for broker in holders:
                count[node[broker]] = count.get(node[broker], 0) + 1
            self._count.append(count)
        self._shares, _ = tree.shares(0, 0, len(holders) + more)

    def brokers(self) -> list[int] | None:
        """The chosen brokers; None if the result is unevenly spread, or no broker is free."""
        for _ in range(self._more):
            broker = self._descend(0, 0)
            if broker == NONE:
                return None
            self._ring.advance(broker)
            self._chosen.append(broker)
            for count, node in zip(self._count, self._lists.node, strict=True):
                count[node[broker]] = count.get(node[broker], 0) + 1
        return self._chosen if self._skip_fuller or self._even() else None

    def _descend(self, level: int, node: int) -> int:
        """A broker below the node; NONE = none is free. Children with a broker that may hold the
        partition and does not hold it yet have their turns in ring order, those to be skipped last.
        """
        children, leaf = self._lists.children[level][node], level == self._tree.height - 1
        count, capacity = self._count[level + 1], self._lists.capacity[level + 1]
        most = self._fewest(level, node) if self._skip_fuller else self._tree.max_replicas
        first, late = self._ring.pointers[level][node], list[int]()
        for turn in range(first - len(children), first):  # a full round, from the pointer on
            child = children[turn]
            replicas = count.get(child, 0)
            if replicas >= capacity[child] or replicas > most or (leaf and not self._free[child]):
                continue
            if self._skipped(level, node, child):
                late.append(child)
                continue
            broker = self._below(level, child)
            if broker is not None:
                return broker
        for child in late:
            broker = self._below(level, child)
            if broker is not None:
                return broker
        return NONE

    def _below(self, level: int, child: int) -> int | None:
        """The broker that a child of a node leads to; None = there is none; NONE = however it goes
        on, the partition would be unevenly spread.
        """
        if level == 0 and self._count[1].get(child, 0) >= self._shares[child][1]:
            return NONE
        if level == self._tree.height - 1:
            return child
        broker = self._descend(level + 1, child)
        return None if broker == NONE else broker

    def _fewest(self, level: int, node: int) -> int:
        """The fewest replicas held by any child that could take one more."""
        count, capacity = self._count[level + 1], self._lists.capacity[level + 1]
        parent = self._lists.parent[level + 1]
        if node not in self._count[level]:
            return 0
        mine = [child for child in count if parent[child] == node]
        if len(mine) < self._lists.open_children[level][node]:
            return 0
        return min((count[c] for c in mine if count[c] < capacity[c]), default=0)

    def _even(self) -> bool:
        """Whether each node's replicas are spread over its children by the spread rule."""
        for level, nodes in enumerate(self._count[:-1]):
            below, parent = self._count[level + 1], self._lists.parent[level + 1]
            for node, replicas in nodes.items():
                shares, least = self._tree.shares(level, node, replicas)
                mine = {c: count for c, count in below.items() if parent[c] == node}
                if any(not shares[c][0] <= n <= shares[c][1] for c, n in mine.items()):
                    return False
                if sum(shares[c][0] for c in mine) < least:
                    return False
        return True


def _brokers(row: Iterable[int]) -> list[int]:
    return [broker for broker in row if broker != NONE]


def _pointer_after(pointer: int, size: int, places: list[int]) -> int:
    """Where a pointer to one of so many children is after those at these places have had their
    turns in rounds, each as often as it is named.

    :param places: sorted; padded with -1.
    """
    left = [place for place in places if place != NONE]
    while left:
        last = left[bisect_left(left, pointer) - 1]  # right before the pointer, or the highest
        pointer = (last + 1) % size
        left = [place for place, before in pairwise(left) if place == before]
    return pointer
