"""Which brokers a replica may go to without making its partition less evenly spread."""

from __future__ import annotations

import numpy as np

from include.domain.array_types import NONE, Ints, Mask, Rows
from include.planning.model.arrays import replica_counts
from include.planning.model.rack_tree import RackTree


class RackConstraint:
    """The spread rule of a rack tree, asked for single replicas, fast.

    Take the first level with several branches. A partition with no more replicas than that
    level has branches (the usual case: three replicas, three or more racks) is evenly spread
    when no two replicas share a branch; all levels below follow. Of other partitions the tree
    itself judges the row before and after.

    :param rows: (P, R) the rows, changed by others as the search goes on. A partition may
        stay as uneven as it is now, but never gets more so; no broker gets it twice.
    """

    def __init__(self, tree: RackTree, rows: Rows) -> None:
        self._tree, self._rows, self._hosts = tree, rows, tree.hosts
        branches = [int((capacity > 0).sum()) for capacity in tree.capacity]
        level = next((n for n, count in enumerate(branches) if count > 1), tree.height)
        self._branch = np.where(tree.hosts, tree.node[level], NONE)
        self._branches: list[int] = [*self._branch.tolist(), NONE]  # the last one is that of NONE
        self._plain = np.ones(len(rows), bool)
        if rows.shape[1] > branches[level]:
            self._plain = replica_counts(rows) <= branches[level]
        self._even = False
        self._uneven = np.zeros(len(rows), np.int64)
        self._uneven[~self._plain] = tree.violations(rows[~self._plain])

    def plain(self) -> bool:
        """Whether no partition has more replicas than the first level has branches."""
        return bool(self._plain.all())

    def even(self) -> bool:
        """Whether all rows are evenly spread now: once they are, no allowed move changes it."""
        if not self._even and self._all_even():
            self._even = True
            self._uneven[:] = 0
        return self._even

    def _all_even(self) -> bool:
        rows = self._rows if self.plain() else self._rows[self._plain]
        branch = np.append(self._branch, NONE).astype(np.int32)  # the last one is that of NONE
        columns = [branch[column] for column in rows.T]
        for place, column in enumerate(columns):
            if ((column == NONE) & (rows[:, place] != NONE)).any():
                return False
            if any(((column == other) & (column != NONE)).any() for other in columns[:place]):
                return False
        return not bool(self._tree.violations(self._rows[~self._plain]).any())

    def admits(self, partitions: Ints, places: Ints, brokers: Ints) -> Mask:
        """(n,) whether the replica in each place of a partition's row may go to the broker."""
        rows = self._rows.take(partitions, axis=0)
        rows[np.arange(len(rows)), places] = NONE
        free: Mask = self._hosts[brokers]
        branch = self._branch[brokers]
        for others in rows.T:
            free &= (self._branch[others] != branch) | (others == NONE)
        tall = np.flatnonzero(~self._plain[partitions])
        if len(tall):
            rows = rows[tall]
            twice = (rows == brokers[tall][:, None]).any(axis=1)
            rows[np.arange(len(rows)), places[tall]] = brokers[tall]
            even = self._tree.violations(rows) <= self._uneven[partitions[tall]]
            free[tall] = even & ~twice
        return free

    def admits_one(self, partition: int, place: int, broker: int) -> bool:
        """The same for one replica."""
        if not self._plain[partition]:
            one = (np.array([value]) for value in (partition, place, broker))
            return bool(self.admits(*one)[0])
        branches = self._branches
        row: list[int] = self._rows[partition].tolist()
        row[place] = NONE
        return branches[broker] != NONE and branches[broker] not in [branches[b] for b in row]
