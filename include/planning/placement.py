"""Filling up replica sets: which replicas to keep, and where the missing ones go.

For one partition the fewest new copies that make its replicas as evenly spread as the rack tree
allows are found exactly, from the root down: each node passes its replicas on to its children
within the quota of the spread rule, and the quotas go to the children in which the most
replicas can be kept. Ties go to the least loaded branch, and inside it to the least loaded
broker, so that partitions taken largest first also fill the brokers evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from include.cluster.model import TopicPartition
from include.errors import InvalidRequestError
from include.planning.arrays import NONE, Floats, Ints, Mask
from include.planning.layout import Layout
from include.planning.racks import RackTree

REPLICA_OVERHEAD = 0.1
"""What a replica weighs beside its bytes, in mean replicas: spreads small and empty ones too."""


class NoPlaceError(Exception):
    """No broker of a branch that must hold a replica takes it."""


class Placer:
    """Completes replica sets of a layout under one rack tree.

    :param capacity: (B,) relative size of the brokers; loads are compared per unit of it.
    """

    def __init__(self, layout: Layout, tree: RackTree, capacity: Floats) -> None:
        self._layout = layout
        self._tree = tree
        mean = float(layout.size.mean()) if len(layout.size) else 0.0
        self._overhead = max(1, round(REPLICA_OVERHEAD * mean))
        self._weight = layout.load + layout.count * self._overhead
        self._capacity = np.maximum(capacity, 1e-9)
        self._branch = [
            np.bincount(node[tree.hosts], self._weight[tree.hosts], minlength=node.max() + 1)
            for node in tree.node
        ]
        self._branch_capacity = [
            np.maximum(np.bincount(node, self._capacity * tree.hosts), 1e-9) for node in tree.node
        ]

    def complete(self, partition: int, replicas: int) -> None:
        """Give the partition that many replicas, spread evenly, with the fewest new copies.

        Replicas on brokers that may not host are given up; a new replica takes the place of
        the one it replaces, the order of the others stays.

        :raises InvalidRequestError: when no allowed broker has room for a replica.
        """
        row = [int(b) for b in self._layout.rows[partition] if b != NONE]
        size = int(self._layout.size[partition])
        keep = [broker for broker in dict.fromkeys(row) if self._tree.hosts[broker]]
        free = self._layout.fits(size) & self._tree.hosts
        free[row] = False
        try:
            chosen = self._choose(self._tree, keep, replicas, free)
        except NoPlaceError:
            chosen = self._choose_where_it_fits(partition, keep, replicas, free)
        self._write(partition, row, chosen)

    def drop(self, partition: int, replicas: int) -> None:
        """Lower the partition to that many replicas, as evenly spread as those it has allow.

        Copies nothing. The preferred leader stays where the spread lets it, and otherwise
        replicas go from the fullest brokers first.
        """
        row = [int(b) for b in self._layout.rows[partition] if b != NONE]
        while len(row) > replicas:
            rest = np.array([row[:i] + row[i + 1 :] for i in range(len(row))], np.int32)
            uneven = self._tree.violations(rest)
            load = -self._relative(np.array(row))
            row.pop(min(range(len(row)), key=lambda i: (uneven[i], i == 0, load[i], i)))
        self._write(partition, row, row)

    def _choose_where_it_fits(
        self, partition: int, keep: list[int], replicas: int, free: Mask
    ) -> list[int]:
        """The same among the brokers with room only: then the spread may be less even."""
        hosts = free.copy()
        hosts[keep] = True
        tree = RackTree(self._tree.paths, hosts, self._tree.max_replicas, self._tree.order)
        if int(hosts.sum()) >= replicas:
            return self._choose(tree, keep, replicas, free)
        name: TopicPartition = self._layout.arrays.partition(partition)
        problem = (
            f"{name} ({int(self._layout.size[partition])} bytes) needs {replicas} brokers, but "
            f"only {int(hosts.sum())} of the allowed ones have the disk space and take "
            "new replicas."
        )
        raise InvalidRequestError([problem])

    def _write(self, partition: int, row: Sequence[int], chosen: Sequence[int]) -> None:
        kept = set(chosen)
        fresh = iter([broker for broker in chosen if broker not in row])
        seen: set[int] = set()
        target = []
        for broker in row:
            keeps = broker in kept and broker not in seen
            seen.add(broker)
            target.append(broker if keeps else next(fresh, NONE))
        target = [broker for broker in [*target, *fresh] if broker != NONE]
        width = self._layout.rows.shape[1]
        before = self._layout.rows[partition].tolist()
        for slot, broker in enumerate([*target, *[NONE] * (width - len(target))]):
            if broker != before[slot]:
                self._layout.move(partition, slot, broker)
        weight = int(self._layout.size[partition]) + self._overhead
        for broker in set(row) ^ set(target):
            self._weigh(broker, weight if broker in target else -weight)

    def _weigh(self, broker: int, weight: int) -> None:
        self._weight[broker] += weight
        if self._tree.hosts[broker]:
            for level, node in enumerate(self._tree.node):
                self._branch[level][node[broker]] += weight

    def _relative(self, brokers: Ints) -> Floats:
        relative: Floats = self._weight[brokers] / self._capacity[brokers]
        return relative

    def _choose(self, tree: RackTree, keep: list[int], replicas: int, free: Mask) -> list[int]:
        chosen: list[int] = []
        self._descend(tree, 0, 0, keep, replicas, free, chosen)
        return chosen

    def _descend(
        self,
        tree: RackTree,
        level: int,
        node: int,
        keep: list[int],
        replicas: int,
        free: Mask,
        chosen: list[int],
    ) -> None:
        """Append to ``chosen`` the brokers of this branch that hold the partition."""
        if replicas == 1 and keep:
            chosen.append(keep[0])
            return
        if level == tree.height - 1:
            chosen += self._leaves(tree.children[level][node], keep, replicas, free)
            return
        by_child = _by_child(tree, level + 1, keep)
        for child, quota in self._quotas(tree, level, node, by_child, replicas):
            self._descend(tree, level + 1, child, by_child.get(child, []), quota, free, chosen)

    def _quotas(
        self, tree: RackTree, level: int, node: int, by_child: dict[int, list[int]], replicas: int
    ) -> list[tuple[int, int]]:
        """(child, replicas) for each child: what the rule gives it, keeping the most replicas."""
        children, fewest, most, extra = tree.quota(level, node, replicas)
        load = self._branch[level + 1][children] / self._branch_capacity[level + 1][children]
        gains = np.zeros(len(children), np.int64)
        for place, child in enumerate(children.tolist() if by_child else ()):
            if child in by_child:
                held = by_child[child]
                gains[place] = keepable(tree, level + 1, child, held, int(most[place])) - (
                    keepable(tree, level + 1, child, held, int(fewest[place]))
                )
        order = np.lexsort((load, -gains, most == fewest))
        quotas = fewest.copy()
        quotas[order[:extra]] = most[order[:extra]]
        return [
            (child, quota)
            for child, quota in zip(children.tolist(), quotas.tolist(), strict=True)
            if quota
        ]

    def _leaves(self, brokers: Ints, keep: list[int], replicas: int, free: Mask) -> list[int]:
        """Brokers right below one node: those that hold a replica first, then the emptiest."""
        kept = keep[:1] + sorted(keep[1:], key=lambda b: self._weight[b] / self._capacity[b])
        kept = kept[:replicas]
        if len(kept) == replicas:
            return kept
        roomy = brokers[free[brokers]]
        if len(roomy) < replicas - len(kept):
            raise NoPlaceError
        order = np.argsort(self._relative(roomy), kind="stable")
        emptiest: list[int] = roomy[order[: replicas - len(kept)]].tolist()
        return kept + emptiest


def _by_child(tree: RackTree, level: int, keep: list[int]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for broker in keep:
        groups.setdefault(int(tree.node[level][broker]), []).append(broker)
    return groups


def keepable(tree: RackTree, level: int, node: int, keep: list[int], replicas: int) -> int:
    """The most replicas of ``keep`` that a node with this many replicas can go on holding.

    A child has one of two quotas, so taking the children with the greatest gain is exact.
    """
    if min(len(keep), replicas) <= 1 or level == tree.height - 1:
        return min(len(keep), replicas)
    children, fewest, most, extra = tree.quota(level, node, replicas)
    by_child = _by_child(tree, level + 1, keep)
    total, gains = 0, []
    for place, child in enumerate(children.tolist()):
        if child in by_child:
            low, high = (
                keepable(tree, level + 1, child, by_child[child], int(quota[place]))
                for quota in (fewest, most)
            )
            total += low
            gains.append(high - low)
    return total + sum(sorted(gains, reverse=True)[:extra])
