"""Fast check of the spread rule: may a replica go to a broker?"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask, Rows
from rehome.planning.model.arrays import replica_counts
from rehome.planning.model.rack_tree import RackTree

MOST_KNOWN = 200_000
"""Replica sets whose violations are kept: a search tries the same ones again and again."""

LARGEST_KEY = 2**62
"""Of a set of racks, as one number."""


class RackConstraint:
    """The spread rule of a rack tree for moves of single replicas.

    The fast path uses the first level with several branches. A partition with no more replicas than
    branches there (the usual case: three replicas, three or more racks) is evenly spread when no
    two replicas share a branch; all lower levels follow. For other partitions, the tree's
    violations before and after the move are compared.

    :param rows: (n, R) the rows; the search changes this array in place. A partition may stay as
        uneven as it is, but never gets less even; no broker gets it twice.
    :param partitions: (n,) whose rows these are; None = all, in their order.
    :param movable: (n,) rows that may change; None = all.
    :ivar evens: of partitions with no more replicas than branches, only moves are allowed after
        which they are even.
    """

    def __init__(
        self,
        tree: RackTree,
        rows: Rows,
        partitions: Ints | None = None,
        movable: Mask | None = None,
    ) -> None:
        self._tree, self._rows = tree, rows
        self._movable = np.ones(len(rows), bool) if movable is None else movable
        self._partitions = np.arange(len(rows)) if partitions is None else partitions
        self._several = len(tree.trees) > 1
        self._start = np.zeros(len(rows), np.int64)  # where the brokers of a row's tree begin
        branch, most = zip(*(_first_branches(one) for one in tree.trees), strict=True)
        self._hosts = np.concatenate([one.hosts for one in tree.trees])
        self._branch: Ints = np.concatenate(branch)
        self._branch_or_none = np.append(self._branch, NONE)  # the last one is that of NONE
        # The last one of each tree is that of NONE.
        self._branches: list[list[int]] = [[*one.tolist(), NONE] for one in branch]
        self._rack = _innermost_racks(tree)
        self._racks: list[int] = np.where(self._hosts, self._rack, NONE).tolist()
        numbers = int(self._rack.max(initial=0)) + 1
        self._racks_have_keys = numbers ** rows.shape[1] <= LARGEST_KEY
        self._rack_digits = numbers ** np.arange(rows.shape[1])
        self._plain = np.ones(len(rows), bool)
        if self._several:
            for number, (_, mine) in enumerate(tree.parts(_all_of(tree))):
                self._start[mine[self._partitions]] = number * len(tree.hosts)
        if rows.shape[1] > min(most):
            limit = np.array(most)[self._start // len(tree.hosts)] if self._several else most[0]
            self._plain = replica_counts(rows) <= limit
        self._unevenness_of: dict[int | tuple[int, ...], int] = {}
        self.evens = False
        self._even = False
        self._uneven = np.zeros(len(rows), np.int64)
        self._uneven[~self._plain] = self._violations(~self._plain, rows[~self._plain])

    def _violations(self, chosen: Mask | Ints, rows: Rows) -> Ints:
        return self._tree.unevenness_of(self._partitions[chosen], rows)

    def plain(self) -> bool:
        """Whether no partition has more replicas than the first level has branches."""
        return bool(self._plain.all())

    def apart(self) -> Mask:
        """(n,) rows of which no two replicas share a branch of the first tree."""
        return _apart([self._branch_or_none[column] for column in self._rows.T])

    def one_of_each_branch(self, brokers: Ints) -> list[int]:
        """The first of these brokers in each branch of the first tree."""
        first = np.unique(self._branch[brokers], return_index=True)[1]
        chosen: list[int] = brokers[first].tolist()
        return chosen

    def even(self) -> bool:
        """Whether all movable rows are evenly spread now. Once they are, every allowed move keeps
        them so.
        """
        if not self._even and self._all_even():
            self._even = True
            self._uneven[:] = 0
        return self._even

    def _all_even(self) -> bool:
        plain, tall = self._movable & self._plain, self._movable & ~self._plain
        rows = self._rows if plain.all() else self._rows[plain]
        branch = np.append(self._branch, NONE).astype(np.int32)  # the last one is that of NONE
        start = self._start if plain.all() else self._start[plain]
        columns = [
            branch[np.where(column == NONE, NONE, column + start) if self._several else column]
            for column in rows.T
        ]
        for position, column in enumerate(columns):
            if ((column == NONE) & (rows[:, position] != NONE)).any():
                return False
            if any(((column == other) & (column != NONE)).any() for other in columns[:position]):
                return False
        return not bool(self._violations(tall, self._rows[tall]).any())

    def hosting(self, partition: int, brokers: Ints, among: Mask) -> Mask:
        """(n,) which of these brokers belong to the broker set of the partition's topic."""
        return among & self._hosts[brokers + self._start[partition]] if self._several else among

    def of_its_set(self, partitions: Ints, brokers: Ints) -> Mask:
        """(n,) whether each broker may host the partition by the set of its topic."""
        if not self._several:
            return np.ones(len(brokers), bool)
        may: Mask = self._hosts[brokers + self._start[partitions]]
        return may

    def admits(self, partitions: Ints, positions: Ints, brokers: Ints) -> Mask:
        """(n,) whether the replica at each position of a partition's row may go to the broker."""
        tall = np.flatnonzero(~self._plain[partitions])
        if len(tall) == len(partitions):
            return self._tall_admit(partitions, positions, brokers)
        rows = self._rows.take(partitions, axis=0)
        rows[np.arange(len(rows)), positions] = NONE
        if self._several:
            start = self._start[partitions]
            brokers_of_trees = brokers + start
            rows = np.where(rows == NONE, NONE, rows + start[:, None])
        else:
            brokers_of_trees = brokers
        free: Mask = self._hosts[brokers_of_trees]
        branch = self._branch[brokers_of_trees]
        branches = [self._branch_or_none[others] for others in rows.T]
        for others in branches:
            free &= others != branch
        if self.evens:
            free &= _apart(branches)
        if len(tall):
            free[tall] = self._tall_admit(partitions[tall], positions[tall], brokers[tall])
        return free

    def _tall_admit(self, partitions: Ints, positions: Ints, brokers: Ints) -> Mask:
        """(n,) the same for partitions with more replicas than the first level has branches."""
        rows, every = self._rows.take(partitions, axis=0), np.arange(len(partitions))
        rows[every, positions] = NONE
        start = self._start[partitions]
        admitted: Mask = self._hosts[brokers + start] & ~(rows == brokers[:, None]).any(axis=1)
        rows[every, positions] = brokers
        some = np.flatnonzero(admitted)
        unevenness = self._unevenness(partitions[some], rows[some])
        admitted[some] = unevenness <= self._uneven[partitions[some]]
        return admitted

    def _unevenness(self, partitions: Ints, rows: Rows) -> Ints:
        """(n,) violations of rows without a broker twice. Those of as many brokers in the same
        racks are alike.
        """
        at = rows + self._start[partitions][:, None]
        alike = ((rows == NONE) | self._hosts[at]).all(axis=1) & self._racks_have_keys
        unevenness = np.zeros(len(rows), np.int64)
        if not alike.all():
            unevenness[~alike] = self._violations(partitions[~alike], rows[~alike])
        racks = np.sort(np.where(rows == NONE, 0, self._rack[at])[alike], axis=1)
        keys: list[int] = (racks @ self._rack_digits).tolist()
        unevenness[alike] = self._of_racks(keys, partitions[alike], rows[alike])
        return unevenness

    def _of_racks(self, keys: list[int], partitions: Ints, rows: Rows) -> Ints:
        """(n,) violations of rows, each remembered by the key of its racks."""
        unevenness_by_key = self._unevenness_of
        if len(unevenness_by_key) >= MOST_KNOWN:
            unevenness_by_key.clear()
        new = {key: n for n, key in enumerate(keys) if key not in unevenness_by_key}
        if new:
            some = np.array(list(new.values()))
            unevenness = self._violations(partitions[some], rows[some]).tolist()
            unevenness_by_key.update(zip(new, unevenness, strict=True))
        return np.array([unevenness_by_key[key] for key in keys], np.int64)

    def admits_one(self, partition: int, position: int, broker: int) -> bool:
        """The same for one replica."""
        if not self._plain[partition]:
            return self._tall_admits(partition, position, broker)
        branches = self._branches[self._start[partition] // len(self._tree.hosts)]
        row: list[int] = self._rows[partition].tolist()
        row[position] = NONE
        taken = [branches[b] for b in row if branches[b] != NONE]
        if self.evens and len(set(taken)) < len(taken):
            return False
        return branches[broker] != NONE and branches[broker] not in taken

    def _tall_admits(self, partition: int, position: int, broker: int) -> bool:
        """The same for a partition with more replicas than the first level has branches."""
        start, row = int(self._start[partition]), self._rows[partition].tolist()
        row[position] = NONE
        if not self._hosts[broker + start] or broker in row:
            return False
        row[position] = broker
        racks = [self._racks[b + start] if b != NONE else 0 for b in row]
        key = (start, *sorted(row if NONE in racks else racks), NONE in racks)
        unevenness = self._unevenness_of.get(key)
        if unevenness is None:
            if len(self._unevenness_of) >= MOST_KNOWN:
                self._unevenness_of.clear()
            of_row = self._violations(np.array([partition]), np.array([row], np.int32))
            unevenness = self._unevenness_of[key] = int(of_row[0])
        return unevenness <= int(self._uneven[partition])


def _apart(branches: list[Ints]) -> Mask:
    """(n,) whether no two of these, each (n,), are the same branch."""
    apart = np.ones(len(branches[0]), bool)
    for one, other in combinations(branches, 2):
        apart &= (one != other) | (one == NONE)
    return apart


def _first_branches(tree: RackTree) -> tuple[Ints, int]:
    """(B,) each hosting broker's node on the first level with several branches, NONE for other
    brokers; and the number of those branches.
    """
    branches = [int((capacity > 0).sum()) for capacity in tree.capacity]
    level = next((n for n, count in enumerate(branches) if count > 1), tree.height)
    return np.where(tree.hosts, tree.node[level], NONE), branches[level]


def _innermost_racks(tree: RackTree) -> Ints:
    """(trees x B,) the innermost rack of each broker in each tree, from 1 on."""
    racks: Ints = np.zeros(0, np.int64)
    for one in tree.trees:
        racks = np.append(racks, racks.max(initial=0) + 1 + one.node[one.height - 1])
    return racks


def _all_of(tree: RackTree) -> Mask:
    """(P,) mask of all partitions that the trees of broker sets apply to."""
    return np.ones(tree.partitions, bool)
