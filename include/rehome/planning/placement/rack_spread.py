"""Choose a partition's brokers: evenly spread, with the fewest new copies. Exact.

The recursion goes from the root of the rack tree down. Each node distributes its replicas over its
children within the quotas of the spread rule; the larger quotas go to the children that can keep
the most existing replicas. A :class:`Preference` breaks ties.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.planning.model.rack_tree import RackTree


class NoPlaceError(Exception):
    """A branch must hold a replica and has no broker that can take it."""


class Free(Protocol):
    """Which brokers may get a new copy of a partition: a mask (B,), or what is asked about some."""

    def __getitem__(self, brokers: Any, /) -> Any: ...


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


class Split(NamedTuple):
    """How a node distributes its replicas, as far as the spread rule decides it.

    :ivar quotas: replicas of each child that gets any, in the order of the tree.
    :ivar tied: (n,) children of which ``extra`` get one more, whichever come first.
    :ivar short: (n,) children whose quota brings them new replicas in any case.
    """

    quotas: dict[int, int]
    tied: Ints
    extra: int
    short: Ints


MOST_SPLITS = 2**16
"""Of a tree, that are remembered."""


def choose(
    tree: RackTree, keep: list[int], replicas: int, free: Free, preference: Preference
) -> list[int]:
    """The brokers that are to hold a partition with that many replicas.

    :param keep: distinct brokers that hold it now and may host; the first one leads.
    :param free: (B,) brokers that may get a new copy; those of ``keep`` get none in any case.
    :raises NoPlaceError: a branch that must hold a replica has no free broker.
    """
    if replicas == 1 and keep:
        return keep[:1]
    chosen: list[int] = []
    _Choice(tree, free, preference).descend(0, 0, keep, replicas, chosen)
    return chosen


class _Choice:
    def __init__(self, tree: RackTree, free: Free, preference: Preference) -> None:
        self._tree, self._free, self._preference = tree, free, preference

    def descend(
        self, level: int, node: int, keep: list[int], replicas: int, chosen: list[int]
    ) -> None:
        """Append to ``chosen`` the brokers of this branch that hold the partition."""
        if level == self._tree.height - 1:
            chosen += self._leaves(level, node, keep, replicas)
            return
        quotas = self._quotas(level, node, keep, replicas)
        below = by_child(self._tree, level + 1, keep) if keep else {}
        for child, quota in quotas.items():
            mine = below.get(child, [])
            if quota == 1:
                chosen.append(mine[0] if mine else self._one_new(level + 1, child))
            else:
                self.descend(level + 1, child, mine, quota, chosen)

    def _one_new(self, level: int, node: int) -> int:
        """The broker for a single replica of a branch that holds none."""
        for below in range(level, self._tree.height):
            children = self._tree.open_nodes(below, node)
            if below == self._tree.height - 1:
                children = children[self._free[children]]
            if not len(children):
                raise NoPlaceError
            node = int(children[self._preference.first(below, node, children)])
        return node

    def _quotas(self, level: int, node: int, keep: list[int], replicas: int) -> dict[int, int]:
        """Replicas of each child, in the order of the tree."""
        made = split(self._tree, level, node, keep, replicas)
        if not made.extra:
            return made.quotas
        more = self._first_ones(level, node, made)
        both = made.quotas | {child: made.quotas.get(child, 0) + 1 for child in more}
        place = self._tree.lists.place[level + 1]
        return {child: both[child] for child in sorted(both, key=place.__getitem__)}

    def _first_ones(self, level: int, node: int, made: Split) -> list[int]:
        """The tied children that get one more."""
        tied, more = made.tied, list[int]()
        if made.short.size:
            children = np.append(tied, made.short)
            short = np.arange(len(children)) >= len(tied)
            rank = self._preference.rank(level, node, children, short)[: len(tied)]
            more = tied[np.argsort(rank, kind="stable")[: made.extra]].tolist()
        while len(more) < made.extra:
            tied = tied[tied != more[-1]] if more else tied
            more.append(int(tied[self._preference.first(level, node, tied)]))
        return more

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
        for broker in keep:
            roomy = roomy[roomy != broker]
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


def split(tree: RackTree, level: int, node: int, keep: list[int], replicas: int) -> Split:
    """How a node above the innermost racks distributes its replicas such that most of ``keep``
    stay. Which racks those lie in decides it, so it is computed once for all in the same racks.
    """
    rack = tree.lists.node[-2]
    _, _, _, extra = tree.quota(level, node, replicas)
    racks = sorted([rack[broker] for broker in keep]) if extra else ()
    key = level, node, replicas, *racks
    made: Split | None = tree.splits.get(key)
    if made is None:
        if len(tree.splits) >= MOST_SPLITS:
            tree.splits.clear()
        made = tree.splits[key] = _split(tree, level, node, keep, replicas)
    return made


def _split(tree: RackTree, level: int, node: int, keep: list[int], replicas: int) -> Split:
    children, fewest, most, extra = tree.quota(level, node, replicas)
    below, short = by_child(tree, level + 1, keep), (fewest == fewest.max()) & (fewest > 0)
    gains = np.where(most > fewest, 0, -1)  # those at -1 get no more
    for place, child in enumerate(children.tolist() if extra and keep else ()):
        if child in below:
            few, many = (
                keepable(tree, level + 1, child, below[child], int(quota[place]))
                for quota in (fewest, most)
            )
            gains[place] += many - few
            short[place] &= len(below[child]) < fewest[place]
    extra = min(extra, int((gains >= 0).sum()))
    if not extra:
        return Split(_some(children, fewest), children[:0], 0, children[:0])
    worst = np.sort(gains)[-extra]
    tied, extra = children[gains == worst], extra - int((gains > worst).sum())
    if extra == len(tied):
        return Split(_some(children, fewest + (gains >= worst)), tied[:0], 0, tied[:0])
    return Split(_some(children, fewest + (gains > worst)), tied, extra, children[short])


def _some(children: Ints, quotas: Ints) -> dict[int, int]:
    each = zip(children.tolist(), quotas.tolist(), strict=True)
    return {child: quota for child, quota in each if quota}


def by_child(tree: RackTree, level: int, brokers: list[int]) -> dict[int, list[int]]:
    """The brokers by the node of this level that each lies in."""
    groups: dict[int, list[int]] = {}
    node = tree.lists.node[level]
    for broker in brokers:
        groups.setdefault(node[broker], []).append(broker)
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
