"""Rack trees with broker sets: one tree for the brokers of each set.

A partition must be evenly spread over the racks of the brokers that may hold it. A replica on
another broker is a violation, as on a broker that may not host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.limits.apply_limits import groups
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.rack_tree import RackTree


class SetTrees(RackTree):
    """The tree of all brokers that may host, and one tree per group of topics.

    :param group_of: (P,) of each partition; ``allowed``: (G, B), see Limits.
    """

    def __init__(
        self,
        paths: Sequence[Sequence[str]],
        hosts: Mask,
        max_replicas: int,
        order: npt.NDArray[np.int64] | None,
        group_of: Ints,
        allowed: Mask,
    ) -> None:
        super().__init__(paths, hosts, max_replicas, order)
        self.group_of, self.partitions, self._allowed = group_of, len(group_of), allowed
        self.trees = tuple(RackTree(paths, hosts & mask, max_replicas, order) for mask in allowed)

    def of(self, partition: int) -> RackTree:
        """The tree of the brokers that may hold a partition."""
        return self.trees[int(self.group_of[partition])]

    def violations_of(self, partitions: Ints, rows: Rows) -> Ints:
        """(n,) violations of partitions, each by the tree of its own brokers."""
        return self._of_each(partitions, rows, RackTree.violations_of)

    def unevenness_of(self, partitions: Ints, rows: Rows) -> Ints:
        """(n,) the same, level by level, of the replicas inside their sets; of equals, those with
        fewer outside are the more even.
        """
        allowed = self._allowed[self.group_of[partitions][:, None], rows]
        inside = np.where(allowed, rows, NONE)
        by_level = self._of_each(partitions, inside, RackTree.unevenness_of)
        unevenness: Ints = by_level * (rows.shape[1] + 1) + self.outside_of(partitions, rows)
        return unevenness

    def outside_of(self, partitions: Ints, rows: Rows) -> Ints:
        """(n,) replicas outside of the set of their topic."""
        allowed = self._allowed[self.group_of[partitions][:, None], rows]
        outside: Ints = (~allowed & (rows != NONE)).sum(axis=1)
        return outside

    def _of_each(
        self, partitions: Ints, rows: Rows, measure: Callable[[RackTree, Ints, Rows], Ints]
    ) -> Ints:
        measured = np.zeros(len(rows), np.int64)
        group = self.group_of[partitions]
        for number, tree in enumerate(self.trees):
            mine = group == number
            if mine.any():
                measured[mine] = measure(tree, partitions[mine], rows[mine])
        return measured

    def parts(self, partitions: Mask) -> list[tuple[RackTree, Mask]]:
        """The trees, each with those of the partitions (P,) that it is for."""
        return [
            (tree, partitions & (self.group_of == number)) for number, tree in enumerate(self.trees)
        ]


def rack_tree(
    arrays: ClusterArrays,
    paths: Sequence[Sequence[str]],
    hosts: Mask,
    max_replicas: int,
    order: npt.NDArray[np.int64] | None = None,
) -> RackTree:
    """The tree of these brokers; with one tree per set if there are broker sets."""
    limits = arrays.limits
    if limits is None or not limits.has_sets:
        return RackTree(paths, hosts, max_replicas, order)
    return SetTrees(paths, hosts, max_replicas, order, groups(arrays), limits.allowed)


def fair_capacity(
    arrays: ClusterArrays, tree: RackTree, capacity: Floats, weight: Floats
) -> Floats:
    """(B,) load of brokers if each group's load is spread over its brokers as evenly as possible.

    :param capacity: (B,) relative size of the brokers; ``weight``: (P,) of all replicas together.
    """
    if len(tree.trees) == 1:
        return np.asarray(capacity, float)
    totals = [float(weight[mine].sum()) for _, mine in tree.parts(np.ones(len(weight), bool))]
    size = np.maximum(capacity, 0.0)
    fair = max_min_fair(np.array(totals), np.stack([one.hosts for one in tree.trees]), size)
    return fair if fair.any() else size


def max_min_fair(totals: Floats, allowed: Mask, size: Floats) -> Floats:
    """(B,) load of brokers if each group's load is spread over its brokers as evenly as possible:
    max-min fairness, by repeated water-filling.

    Each group in turn fills its brokers to one level on top of the other groups' load, until
    nothing changes: then no broker could give load to another one of the same group.

    :param totals: (G,) load of each group; ``allowed``: (G, B) brokers that it may use.
    :param size: (B,) relative size of the brokers.
    """
    poured = np.zeros(allowed.shape)
    for _ in range(POURS):
        before = poured.copy()
        for number, (brokers, total) in enumerate(zip(allowed, totals.tolist(), strict=True)):
            rest = poured.sum(axis=0) - poured[number]
            poured[number] = _level(rest, np.where(brokers, size, 0.0), total)
        if np.abs(poured - before).max() <= SETTLED * max(totals.sum(), 1.0):
            break
    fair: Floats = poured.sum(axis=0)
    return fair


POURS, SETTLED = 200, 1e-9
"""The most rounds, and the relative change below which the result has converged."""


def _level(rest: Floats, size: Floats, total: float) -> Floats:
    """(B,) amounts that fill brokers on top of ``rest`` up to one level by their size."""
    some = np.flatnonzero(size > 0)
    out = np.zeros(len(size))
    if total <= 0 or not len(some):
        return out
    level = rest[some] / size[some]
    order = some[np.argsort(level, kind="stable")]
    reach = rest[order] / size[order]
    filled = np.cumsum(size[order]) * reach - np.cumsum(rest[order])
    last = int(np.searchsorted(filled, total, side="right"))
    wide = order[:last]
    height = (total + rest[wide].sum()) / size[wide].sum()
    out[wide] = np.maximum(height * size[wide] - rest[wide], 0)
    return out
