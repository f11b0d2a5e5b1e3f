"""Choose a partition's brokers: evenly spread, with the fewest new copies. Exact.

The recursion goes from the root of the rack tree down. Each node distributes its replicas over its
children within the quotas of the spread rule; the larger quotas go to the children that can keep
the most existing replicas. A :class:`Preference` breaks ties.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.planning.model.rack_tree import RackTree


class NoPlaceError(Exception):
    """A branch must hold a replica and has no broker that can take it."""


class Preference(Protocol):
    """Ranks children of a node that are equal by the spread rule."""

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        """(n,) lower comes first. On the last level, children are brokers.

        :param level: of the node; its children are on the next one.
        :param short: (n,) children that get replicas in any case, before the extra ones are handed
            out.
        """

    def first(self, level: int, node: int, children: Ints) -> int:
        """Index of the child that comes first, of at least one, where none is short."""
        return int(self.rank(level, node, children, np.zeros(len(children), bool)).argmin())


def choose(
    tree: RackTree, keep: list[int], replicas: int, free: Mask, preference: Preference
) -> list[int]:
    """The brokers that are to hold a partition with that many replicas.

    :param keep: distinct brokers that hold it now and may host; the first one leads.
    :param free: (B,) brokers that may get a new copy.
    :raises NoPlaceError: a branch that must hold a replica has no free broker.
    """
    chosen: list[int] = []
    _Choice(tree, free, preference).descend(0, 0, keep, replicas, chosen)
    return chosen


class _Choice:
    def __init__(self, tree: RackTree, free: Mask, preference: Preference) -> None:
        self._tree, self._free, self._preference = tree, free, preference

    def descend(
        self, level: int, node: int, keep: list[int], replicas: int, chosen: list[int]
    ) -> None:
        """Append to ``chosen`` the brokers of this branch that hold the partition."""
        if replicas == 1 and keep:
            chosen.append(keep[0])
            return
        if level == self._tree.height - 1:
            chosen += self._leaves(level, node, keep, replicas)
            return
        if replicas == 1 and self._tree.capacity[level][node]:
            child = self._only_one(level, node)
            self.descend(level + 1, child, keep, replicas, chosen)
            return
        below = by_child(self._tree, level + 1, keep)
        for child, quota in self._quotas(level, node, below, replicas):
            self.descend(level + 1, child, below.get(child, []), quota, chosen)

    def _only_one(self, level: int, node: int) -> int:
        """The child that gets a single replica: any that has a broker for it may."""
        children = self._tree.children[level][node]
        children = children[self._tree.capacity[level + 1][children] > 0]
        return int(children[self._preference.first(level, node, children)])

    def _quotas(
        self, level: int, node: int, brokers_of_child: dict[int, list[int]], replicas: int
    ) -> list[tuple[int, int]]:
        """(child, replicas) for each child: its quota, such that the most existing replicas
        stay.
        """
        children, fewest, most, extra = self._tree.quota(level, node, replicas)
        if not extra:
            given = zip(children.tolist(), fewest.tolist(), strict=True)
            return [(child, quota) for child, quota in given if quota]
        gains = np.zeros(len(children), np.int64)
        short = fewest == fewest.max()
        for place, child in enumerate(children.tolist() if brokers_of_child else ()):
            if child in brokers_of_child:
                few, many = int(fewest[place]), int(most[place])
                gains[place] = keepable(
                    self._tree, level + 1, child, brokers_of_child[child], many
                ) - (keepable(self._tree, level + 1, child, brokers_of_child[child], few))
                short[place] &= len(brokers_of_child[child]) < few
        rank = self._preference.rank(level, node, children, short & (fewest > 0))
        order = np.lexsort((rank, -gains, most == fewest))
        quotas = fewest.copy()
        quotas[order[:extra]] = most[order[:extra]]
        return [
            (child, quota)
            for child, quota in zip(children.tolist(), quotas.tolist(), strict=True)
            if quota
        ]

    def _leaves(self, level: int, node: int, keep: list[int], replicas: int) -> list[int]:
        """Brokers directly below one node: those with a replica first, the leader before the
        others.
        """
        if len(keep) > replicas:
            keep = keep[:1] + self._rank(level, node, np.array(keep[1:], np.int64))
        if len(keep) >= replicas:
            return keep[:replicas]
        brokers = self._tree.children[level][node]
        roomy = brokers[self._free[brokers]]
        if len(roomy) < replicas - len(keep):
            raise NoPlaceError
        if replicas - len(keep) == 1:
            return [*keep, int(roomy[self._preference.first(level, node, roomy)])]
        return keep + self._rank(level, node, roomy)[: replicas - len(keep)]

    def _rank(self, level: int, node: int, brokers: Ints) -> list[int]:
        nothing = np.zeros(len(brokers), bool)
        rank = self._preference.rank(level, node, brokers, nothing)
        ranked: list[int] = brokers[np.argsort(rank, kind="stable")].tolist()
        return ranked


def by_child(tree: RackTree, level: int, brokers: list[int]) -> dict[int, list[int]]:
    """The brokers by the node of this level that each lies in."""
    groups: dict[int, list[int]] = {}
    for broker in brokers:
        groups.setdefault(int(tree.node[level][broker]), []).append(broker)
    return groups


def keepable(tree: RackTree, level: int, node: int, keep: list[int], replicas: int) -> int:
    """The most replicas of ``keep`` that a node with this many replicas can go on holding.

    A child has one of two quotas, so taking the children with the greatest gain is exact.
    """
    if min(len(keep), replicas) <= 1 or level == tree.height - 1:
        return min(len(keep), replicas)
    children, fewest, most, extra = tree.quota(level, node, replicas)
    brokers_of_child = by_child(tree, level + 1, keep)
    total, gains = 0, []
    for place, child in enumerate(children.tolist()):
        if child in brokers_of_child:
            low, high = (
                keepable(tree, level + 1, child, brokers_of_child[child], int(quota[place]))
                for quota in (fewest, most)
            )
            total += low
            gains.append(high - low)
    return total + sum(sorted(gains, reverse=True)[:extra])
