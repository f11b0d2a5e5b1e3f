"""The rack tree, and the spread rule: as even as possible at every level.

A rack path ``/dc0/r1`` makes two levels; brokers are the leaves, each of capacity one when it may
host replicas and zero when it may not. A node with m replicas of a partition spreads them evenly
when each child holds ``min(capacity, x)`` or ``min(capacity, x + 1)`` of them. The level x follows
from water-filling: m replicas are poured into the children, each up to its capacity. At the leaves
the same rule demands live and distinct brokers. KIP-879 asks for racks of several levels and
describes one way to place replicas (rings of iterators); this rule says which results are valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rehome.domain.array_types import NONE, Ints, Mask, Rows

NO_RACK = "no rack"
"""The name of the child of the root that all brokers without a rack are in."""

NONE_WITHIN = "no rack within"
"""The same of brokers right below a rack that has racks within: ``/dc0, no rack within``."""

PARTITIONS_AT_ONCE = 2**13
"""Rows whose violations are computed at a time: what that needs then stays in the cache."""

Shares = dict[int, tuple[int, int]]


class TreeLists(NamedTuple):
    """A tree as plain lists, which a loop over single partitions reads several times as fast.

    :ivar node: per level, (B,) the node each broker lies in.
    :ivar children: per level, per node: its children on the next level, in the tree's order.
    :ivar size: per level, per node: how many children it has.
    :ivar place: per level, per node: its index among its siblings; 0 of the root.
    :ivar place_of: per level, (B,) the same of the node each broker lies in.
    :ivar parent, capacity: per level, per node, as the tree has them.
    :ivar open_children: per level, per node, as the tree has them.
    """

    node: list[list[int]]
    children: list[list[list[int]]]
    size: list[list[int]]
    place: list[Ints]
    place_of: list[list[int]]
    parent: list[list[int]]
    capacity: list[list[int]]
    open_children: list[list[int]]


class RackTree:
    """The tree of one set of brokers.

    :param paths: rack path per broker, from the root down; all empty = no racks.
    :param hosts: (B,) which brokers may host replicas.
    :param max_replicas: the largest replication factor that is used with this tree.
    :param order: (B,) the order in which equal brokers are tried.
    :ivar trees: one per group of topics, see :mod:`rehome.planning.limits.set_trees`; without
        broker sets, this tree.
    :ivar partitions: number of partitions if there are several trees; 0 if there is one.
    :ivar height: number of levels below the root; the last one is the brokers.
    :ivar node: per level, (B,) the node each broker lies in.
    :ivar capacity: per level, per node: brokers below it that may host.
    :ivar children: per level, per node: its children on the next level, in ``order``.
    :ivar open_children: per level, per node: children with a capacity.
    :ivar splits: what :func:`rehome.planning.placement.rack_spread.split` remembers.
    :ivar least, most: per level, (max_replicas + 1, nodes): the fewest and most replicas that a
        node may hold of a partition with that many replicas.
    """

    def __init__(
        self,
        paths: Sequence[Sequence[str]],
        hosts: Mask,
        max_replicas: int,
        order: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.hosts = hosts
        self.max_replicas = max_replicas
        self.order = np.arange(len(hosts)) if order is None else order
        self.paths = tuple(tuple(path) for path in paths)
        self.node = self._nodes()
        self.height = len(self.node) - 1
        self.capacity = [
            np.bincount(node[hosts], minlength=int(node.max(initial=-1)) + 1) for node in self.node
        ]
        self.parent = [np.zeros(0, np.int64)]
        self.children: list[list[Ints]] = []
        self._filled = [np.zeros((0, 0), np.int64)]
        self._level = [np.zeros((0, 0), np.int64)]
        for level in range(1, self.height + 1):
            self._link(level)
            self._fill(level)
        self.least, self.most = self._ranges()
        self.open_children = [
            np.bincount(parent[capacity > 0], minlength=len(self.capacity[level]))
            for level, (parent, capacity) in enumerate(
                zip(self.parent[1:], self.capacity[1:], strict=True)
            )
        ]
        self.trees: tuple[RackTree, ...] = (self,)
        self.partitions = 0
        self._quotas: dict[tuple[int, int, int], tuple[Ints, Ints, Ints, int]] = {}
        self._shares: dict[tuple[int, int, int], tuple[Shares, int]] = {}
        self._open_nodes: dict[tuple[int, int], Ints] = {}
        self.splits: dict[tuple[int, ...], Any] = {}

    @cached_property
    def lists(self) -> TreeLists:
        """The tree as plain lists."""
        place = [np.zeros(len(room), np.int64) for room in self.capacity]
        for level, groups in enumerate(self.children):
            for children in groups:
                place[level + 1][children] = np.arange(len(children))
        return TreeLists(
            node=[node.tolist() for node in self.node],
            children=[[group.tolist() for group in groups] for groups in self.children],
            size=[[len(group) for group in groups] for groups in self.children],
            place=place,
            place_of=[here[node].tolist() for here, node in zip(place, self.node, strict=True)],
            parent=[parent.tolist() for parent in self.parent],
            capacity=[capacity.tolist() for capacity in self.capacity],
            open_children=[count.tolist() for count in self.open_children],
        )

    def _nodes(self) -> list[Ints]:
        depth = max((len(path) for path in self.paths), default=0)
        nodes = [np.zeros(len(self.paths), np.int64)]
        for level in range(1, depth + 1):
            # Short paths are padded: brokers right below a data centre are in a rack of their own,
            # and those without any rack in one more child of the root.
            prefixes = [(path + ("",) * depth)[:level] for path in self.paths]
            numbers = {prefix: number for number, prefix in enumerate(sorted(set(prefixes)))}
            nodes.append(np.array([numbers[prefix] for prefix in prefixes], np.int64))
        nodes.append(np.arange(len(self.paths)))
        return nodes

    def _link(self, level: int) -> None:
        parent = np.zeros(len(self.capacity[level]), np.int64)
        parent[self.node[level]] = self.node[level - 1]
        self.parent.append(parent)
        children: list[list[int]] = [[] for _ in self.capacity[level - 1]]
        for child in dict.fromkeys(self.node[level][self.order].tolist()):
            children[parent[child]].append(child)
        self.children.append([np.array(group, np.int64) for group in children])

    def _fill(self, level: int) -> None:
        """filled[v, x]: replicas in node v when its children hold x each; level[v, m]: the x that m
        replicas reach.
        """
        parents, top = len(self.capacity[level - 1]), self.max_replicas + 2
        filled = np.zeros((parents, top), np.int64)
        for x in range(top):
            np.add.at(filled[:, x], self.parent[level], np.minimum(self.capacity[level], x))
        reached = [(filled <= m).sum(axis=1) - 1 for m in range(self.max_replicas + 1)]
        self._filled.append(filled)
        self._level.append(np.stack(reached, axis=1))

    def _ranges(self) -> tuple[list[Ints], list[Ints]]:
        counts = np.arange(self.max_replicas + 1)[:, None]
        least, most = [counts], [counts]
        for level in range(1, self.height + 1):
            parent, capacity = self.parent[level], self.capacity[level]
            low, high = least[-1][:, parent], most[-1][:, parent]
            base = self._level[level][parent, high]
            poured = base + (self._filled[level][parent, base] < high)
            least.append(np.minimum(capacity, self._level[level][parent, low]))
            most.append(np.minimum(capacity, poured))
        return least, most

    def violations(self, rows: Rows) -> Ints:
        """(n,) how far each row of dense broker indexes is from the even spread; 0 = even.

        Counts, over all nodes of all levels, replicas too many and too few: also replicas on
        brokers that may not host and second replicas on one broker. This is the only place
        that says what a valid replica set is.

        :param rows: (n, R), padded with -1.
        """
        totals = np.zeros(len(rows), np.int64)
        for start in range(0, len(rows), PARTITIONS_AT_ONCE):
            some = slice(start, start + PARTITIONS_AT_ONCE)
            for violations in self._violations(rows[some]):
                totals[some] += violations
        return totals

    def violations_by_level(self, rows: Rows) -> Ints:
        """(height, n) the same of each level, from the root down. A level counts more than all
        below it.
        """
        return np.stack(list(self._violations(rows)))

    def _violations(self, rows: Rows) -> Iterator[Ints]:
        brokers = np.ascontiguousarray(rows.T)
        is_replica = brokers != NONE
        brokers = np.where(is_replica, brokers, 0)
        parent = np.zeros(brokers.shape, np.int64)
        inside = np.broadcast_to(is_replica.sum(axis=0), brokers.shape)
        same_parent, first_parent = _same(parent, is_replica)
        for level in range(1, self.height + 1):
            node = self.node[level][brokers]
            same, first = _same(node, is_replica)
            mine = same.sum(axis=1)
            base = self._level[level][parent, inside]
            capacity = self.capacity[level][node]
            extra = (first * np.maximum(mine - np.minimum(capacity, base + 1), 0)).sum(axis=0)
            reached = first * np.minimum(mine, np.minimum(capacity, base))
            per_parent = (same_parent * reached).sum(axis=1)
            even_fill = self._filled[level][parent, base]
            yield extra + (first_parent * (even_fill - per_parent)).sum(axis=0)
            parent, inside, same_parent, first_parent = node, mine, same, first

    def of(self, partition: int) -> RackTree:
        """The tree of the brokers that may hold a partition: of those of its broker set."""
        return self

    def violations_of(self, partitions: Ints, rows: Rows) -> Ints:
        """(n,) :meth:`violations` of partitions, each by the tree of its own brokers."""
        return self.violations(rows)

    def unevenness_of(self, partitions: Ints, rows: Rows) -> Ints:
        """(n,) the same, but one violation of a level counts more than all of the levels below: the
        smaller, the more even.
        """
        total = np.zeros(len(rows), np.int64)
        for start in range(0, len(rows), PARTITIONS_AT_ONCE):
            some = slice(start, start + PARTITIONS_AT_ONCE)
            for violations in self._violations(rows[some]):
                total[some] = total[some] * (2 * rows.shape[1] + 1) + violations
        return total

    def outside_of(self, partitions: Ints, rows: Rows) -> Ints:
        """(n,) replicas outside of the set of their topic: none, where there is one tree."""
        return np.zeros(len(rows), np.int64)

    def parts(self, partitions: Mask) -> list[tuple[RackTree, Mask]]:
        """Each tree, with the partitions (P,) that it applies to."""
        return [(self, partitions)]

    def name(self, level: int, node: int) -> str:
        """The node's rack path: ``/dc0/r1``; ``/`` for the root, :data:`NO_RACK` and
        :data:`NONE_WITHIN` for brokers that have none there.
        """
        path = self.paths[int(np.flatnonzero(self.node[level] == node)[0])]
        if level and not path:
            return NO_RACK
        name, length = "/" + "/".join(path[:level]), len(path)
        if length >= level or all(p == path for p in self.paths if p[:length] == path):
            return name
        return f"{name}, {NONE_WITHIN}"

    def quota(self, level: int, node: int, replicas: int) -> tuple[Ints, Ints, Ints, int]:
        """How a node distributes its replicas: children, fewest each, most each, and how many
        children get the most.
        """
        cached_quota = self._quotas.get((level, node, replicas))
        if cached_quota is not None:
            return cached_quota
        children = self.children[level][node]
        base = int(self._level[level + 1][node, replicas])
        capacity = self.capacity[level + 1][children]
        fewest, most = np.minimum(capacity, base), np.minimum(capacity, min(base + 1, replicas))
        quota = children, fewest, most, replicas - int(fewest.sum())
        self._quotas[level, node, replicas] = quota
        return quota

    def open_nodes(self, level: int, node: int) -> Ints:
        """The children of a node that can hold a replica."""
        nodes = self._open_nodes.get((level, node))
        if nodes is None:
            nodes = self.children[level][node]
            nodes = self._open_nodes[level, node] = nodes[self.capacity[level + 1][nodes] > 0]
        return nodes

    def shares(self, level: int, node: int, replicas: int) -> tuple[Shares, int]:
        """The same as a mapping: child → (fewest, most); and the sum of all fewest."""
        shares_and_least = self._shares.get((level, node, replicas))
        if shares_and_least is None:
            children, fewest, most, _ = self.quota(level, node, replicas)
            each = zip(fewest.tolist(), most.tolist(), strict=True)
            shares_and_least = dict(zip(children.tolist(), each, strict=True)), int(fewest.sum())
            self._shares[level, node, replicas] = shares_and_least
        return shares_and_least


def _same(values: Ints, is_replica: Mask) -> tuple[Mask, Mask]:
    """(R, R, n) pairs of equal values among held positions; (R, n) first position of each value."""
    same = (values[:, None] == values) & is_replica[:, None] & is_replica
    first = is_replica.copy()
    for position in range(1, len(values)):
        first[position] &= ~same[position, :position].any(axis=0)
    return same, first
