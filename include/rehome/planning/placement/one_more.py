"""Where one more replica of a partition may go while all others stay where they are.

Partitions whose replicas lie in the same racks are alike: what is open to them is found once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rehome.domain.array_types import NONE, Ints, Rows
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.rack_spread import by_child, keepable, split

MOST_KINDS = 2**14
"""Of partitions: where there are more, hardly any two are alike, and further ones take much memory.
"""


class Openings:
    """What is open to partitions under one tree."""

    def __init__(self, tree: RackTree) -> None:
        self.tree, self._rack = tree, tree.lists.node[-2]
        self._made: dict[tuple[int, ...], Opening] = {}

    def of_each(self, rows: Rows) -> Iterator[Opening | None]:
        """What is open below the root to each partition; None where the spread rule does not
        let all replicas stay, and for kinds beyond the first ones.

        :param rows: (n, R) brokers that hold them; all host, and no partition has one twice.
        """
        kinds, first = _kinds(np.sort(self.tree.node[-2][rows], axis=1))
        openings: list[Opening | None] = []
        for holders in rows[first[:MOST_KINDS]].tolist():
            stay = keepable(self.tree, 0, 0, holders, len(holders) + 1) == len(holders)
            openings.append(self.at(0, 0, holders) if stay else None)
        openings.append(None)
        return map(openings.__getitem__, np.minimum(kinds, len(openings) - 1).tolist())

    def at(self, level: int, node: int, holders: list[int]) -> Opening:
        """What is open below a node to a partition that these brokers below it hold."""
        key = level, node, *sorted([self._rack[broker] for broker in holders])
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Opening(self, level, node, holders)
        return made


class Opening:
    """What is open below a node.

    :ivar children: those that may get the replica, and NONE for the others, in the order of the
        tree. Right above the brokers: all of these, whether they hold the partition or not.
    :ivar only: the child, if there is one; else NONE.
    """

    __slots__ = ("_all", "_below", "_holders", "_level", "children", "only")

    def __init__(self, among: Openings, level: int, node: int, holders: list[int]) -> None:
        self._all, self._level, self._holders = among, level, holders
        self._below: dict[int, Opening] = {}
        self.children, self.only = among.tree.lists.children[level][node], NONE
        if level < among.tree.height - 1:
            may = _open_children(among.tree, level, node, holders)
            self.children = [child if child in may else NONE for child in self.children]
            self.only = next(iter(may)) if len(may) == 1 else NONE

    def below(self, child: int) -> Opening:
        """What is open below a child."""
        opening = self._below.get(child)
        if opening is None:
            node = self._all.tree.lists.node[self._level + 1]
            holders = [broker for broker in self._holders if node[broker] == child]
            opening = self._below[child] = self._all.at(self._level + 1, child, holders)
        return opening


def _open_children(tree: RackTree, level: int, node: int, holders: list[int]) -> set[int]:
    """The child that has fewer replicas than the spread rule gives it in any case; if there is
    none, those among which the rule leaves the choice.
    """
    below = by_child(tree, level + 1, holders)
    made = split(tree, level, node, holders, len(holders) + 1)
    short = {child for child, n in made.quotas.items() if n > len(below.get(child, ()))}
    return short or set(made.tied.tolist())


def _kinds(values: Rows) -> tuple[Ints, Ints]:
    """(n,) a number for each row, the same for equal rows; and the first row of each number."""
    kinds = np.zeros(len(values), np.int64)
    for column in values.T:
        both = kinds * (int(values.max(initial=0)) + 1) + column
        _, kinds = np.unique(both, return_inverse=True)
    _, first = np.unique(kinds, return_index=True)
    return kinds, first
