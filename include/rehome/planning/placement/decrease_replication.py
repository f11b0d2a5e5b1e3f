"""Lower replication factors: which replicas are removed. Nothing is copied."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.model.in_sync import in_sync
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.replica_sets import replica_overhead

SETS_PER_BATCH = 500_000
"""Candidate replica sets that are checked against the spread rule in one batch."""

PROGRESS_PER_BATCH = 256
"""Batch size, relative to progress: after n partitions, the next n / 256 are decided with the same
loads.
"""


def shrink(
    layout: Layout, tree: RackTree, capacity: Floats, partitions: Ints, replicas: int
) -> Ints:
    """Lower partitions to a number of replicas, as evenly spread as those they have allow.

    Priorities: replicas out of sync are removed first; then the spread counts; then the preferred
    leader stays; then the fullest brokers are relieved, by the largest partitions first.

    :param partitions: with more replicas than that; ``capacity``: (B,) relative size of brokers.
    :returns: partitions that are spread less evenly than possible because their replicas in sync
        stay.
    """
    uneven = []
    has = (layout.rows[partitions] != NONE).sum(axis=1)
    for count in np.unique(has).tolist():
        mine = partitions[has == count]
        mine = mine[np.argsort(-layout.size[mine], kind="stable")]
        uneven.append(_Shrinker(layout, tree, capacity, count, replicas).run(mine))
        layout.refresh()
    return np.sort(np.concatenate([np.zeros(0, np.int64), *uneven]))


class _Shrinker:
    """Lowers partitions that all have the same number of replicas.

    :ivar kept: (C, replicas) positions that stay: all combinations.
    """

    def __init__(
        self, layout: Layout, tree: RackTree, capacity: Floats, count: int, replicas: int
    ) -> None:
        self._layout, self._tree, self._count = layout, tree, count
        gone = combinations(range(count), count - replicas)
        self._kept = np.array(
            [[position for position in range(count) if position not in some] for some in gone],
            np.int64,
        ).reshape(comb(count, replicas), replicas)
        self._capacity = np.maximum(capacity * tree.hosts, 1e-9)
        self._weight = layout.size + replica_overhead(layout)
        self._held = (layout.load + layout.count * replica_overhead(layout)).astype(float)

    def run(self, partitions: Ints) -> Ints:
        """Choose for these partitions, in this order; see :func:`shrink`."""
        chunk = max(1, SETS_PER_BATCH // len(self._kept))
        uneven = [np.zeros(0, np.int64)]
        for start in range(0, len(partitions), chunk):
            some = partitions[start : start + chunk]
            rows = self._layout.rows[some][:, : self._count]
            allowed, worse = self._allowed(some, rows)
            self._choose(some, rows, allowed, start)
            uneven.append(some[worse])
        return np.concatenate(uneven)

    def _allowed(self, partitions: Ints, rows: Rows) -> tuple[Mask, Mask]:
        """(n, C) choices that keep most replicas in sync, of these the most even, of these those
        that keep the preferred leader; (n,) whether another choice would be more even.
        """
        synced = in_sync(self._layout.arrays, partitions, rows)
        kept = synced[:, self._kept].sum(axis=2)
        safest = kept == kept.max(axis=1, keepdims=True)
        sets = rows[:, self._kept].reshape(-1, self._kept.shape[1])
        uneven = self._tree.violations_of(np.repeat(partitions, len(self._kept)), sets)
        uneven = uneven.reshape(len(rows), -1)
        least = np.where(safest, uneven, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
        best = safest & (uneven == least)
        led = best & (self._kept == 0).any(axis=1)
        allowed: Mask = np.where(led.any(axis=1, keepdims=True), led, best)
        return allowed, least[:, 0] > uneven.min(axis=1)

    def _choose(self, partitions: Ints, rows: Rows, allowed: Mask, done: int) -> None:
        """Keep the replicas on the emptiest brokers, a batch of partitions at a time."""
        start = 0
        while start < len(partitions):
            together = max(1, len(self._held) // 4, (done + start) // PROGRESS_PER_BATCH)
            part = slice(start, start + together)
            full = (self._held / self._capacity)[rows[part]]
            chosen = np.zeros(allowed[part].shape)
            for positions in self._kept.T:
                chosen += full[:, positions]
            choice = np.where(allowed[part], chosen, np.inf).argmin(axis=1)
            self._write(partitions[part], rows[part], self._kept[choice])
            start += together

    def _write(self, partitions: Ints, rows: Rows, kept: Ints) -> None:
        stays = np.take_along_axis(rows, kept, axis=1)
        now = np.full((len(rows), self._layout.rows.shape[1]), NONE, np.int32)
        now[:, : stays.shape[1]] = stays
        self._layout.rows[partitions] = now
        weight = self._weight[partitions].astype(float)
        for column, sign in (*((column, -1) for column in rows.T), *((c, 1) for c in stays.T)):
            self._held += sign * np.bincount(column, weight, len(self._held))
