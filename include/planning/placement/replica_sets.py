"""Filling up replica sets: which replicas to keep, and where the missing ones go.

The spread rule comes first (see ``spread``); ties go to the least loaded branch, and inside it
to the least loaded broker, so that partitions taken largest first also fill the brokers evenly.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Mask
from include.domain.kafka import TopicPartition
from include.errors import InvalidRequestError
from include.planning.model.layout import Layout
from include.planning.model.rack_tree import RackTree
from include.planning.model.topic_bands import TopicBands
from include.planning.placement.rack_spread import NoPlaceError, choose
from include.planning.placement.topic_counts import TopicCounts

REPLICA_OVERHEAD = 0.1
"""What a replica weighs beside its bytes, in mean replicas: spreads small and empty ones too."""


def replica_overhead(layout: Layout) -> int:
    """What each replica weighs beside its bytes."""
    mean = float(layout.size.mean()) if len(layout.size) else 0.0
    return max(1, round(REPLICA_OVERHEAD * mean))


class Fullness:
    """What brokers and the branches above them hold, per unit of capacity: prefers the emptiest.

    :param weight: (B,) what each broker holds.
    :param capacity: (B,) relative size of the brokers.
    """

    def __init__(self, tree: RackTree, weight: Floats, capacity: Floats) -> None:
        self._tree = tree
        self._weight = [
            np.bincount(node[tree.hosts], weight[tree.hosts], minlength=len(room))
            for node, room in zip(tree.node, tree.capacity, strict=True)
        ]
        self._capacity = [
            np.maximum(np.bincount(node, capacity * tree.hosts), 1e-9) for node in tree.node
        ]

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        """(n,) weight per capacity; ``node`` and ``short`` do not matter."""
        return self.of(level + 1, children)

    def of(self, level: int, nodes: Ints | int, *, without: int = 0) -> Floats:
        """Weight per capacity of nodes on a level, each less so much."""
        relative: Floats = (self._weight[level][nodes] - without) / self._capacity[level][nodes]
        return relative

    def add(self, broker: int, weight: int) -> None:
        """The broker, if it may host, holds so much more."""
        if self._tree.hosts[broker]:
            for held, node in zip(self._weight, self._tree.node, strict=True):
                held[node[broker]] += weight


class SpreadFirst:
    """Prefers brokers that lack replicas of a topic, then those that may hold more of it; among
    equals the emptiest.
    """

    def __init__(self, tree: RackTree, fullness: Fullness, counts: TopicCounts) -> None:
        self._tree, self._fullness, self._counts = tree, fullness, counts
        self._tiers: list[Ints] = []

    def look_at(self, partition: int, free: Mask) -> None:
        """What follows is about this partition, and these brokers (B,)."""
        counts, tree = self._counts, self._tree
        cells = counts.cells(np.array([partition]), np.arange(counts.brokers))
        held = counts.held[cells]
        tier = 2 - (held < counts.high[cells]).astype(np.int64) - (held < counts.low[cells])
        tier = np.where(free, tier, 3)
        self._tiers = [np.full(len(room), 3) for room in tree.capacity]
        for of_nodes, node in zip(self._tiers, tree.node, strict=True):
            np.minimum.at(of_nodes, node, tier)

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        """(n,) places in the order of preference."""
        full = self._fullness.rank(level, node, children, short)
        ranks = np.empty(len(children))
        ranks[np.lexsort((full, self._tiers[level + 1][children]))] = np.arange(len(children))
        return ranks

    def add(self, partition: int, broker: int, replicas: int) -> None:
        """The broker holds so many more of the partition's topic."""
        self._counts.held[self._counts.cell(partition, broker)] += replicas


class Placer:
    """Completes replica sets of a layout under one rack tree.

    :param capacity: (B,) relative size of the brokers; loads are compared per unit of it.
    :param takes: (B,) brokers that new replicas may go to; None = all that host any.
    :param bands: of topics: brokers that lack a topic come first, those that have enough of it
        last; None = the emptiest come first.
    """

    def __init__(
        self,
        layout: Layout,
        tree: RackTree,
        capacity: Floats,
        bands: TopicBands | None = None,
        takes: Mask | None = None,
    ) -> None:
        self._layout = layout
        self._takes = np.ones(len(tree.hosts), bool) if takes is None else takes
        self._tree = tree
        self._overhead = replica_overhead(layout)
        weight = (layout.load + layout.count * self._overhead).astype(float)
        self.fullness = Fullness(tree, weight, capacity)
        self._topics = None
        if bands is not None:
            self._topics = SpreadFirst(
                tree, self.fullness, TopicCounts.of_replicas(bands, layout.rows)
            )

    def complete(self, partition: int, replicas: int) -> None:
        """Give the partition that many replicas, spread evenly, with the fewest new copies.

        Replicas on brokers that may not host are given up; a new replica takes the place of
        the one it replaces, the order of the others stays.

        :raises InvalidRequestError: when no allowed broker has room for a replica.
        """
        row = [int(b) for b in self._layout.rows[partition] if b != NONE]
        tree = self._tree.of(partition)
        keep = [broker for broker in dict.fromkeys(row) if tree.hosts[broker]]
        free = self._layout.fits(partition) & tree.hosts & self._takes
        free[row] = False
        try:
            chosen = self._choose(partition, tree, keep, replicas, free)
        except NoPlaceError:
            chosen = self._choose_where_it_fits(partition, keep, replicas, free)
        self._write(partition, row, chosen)

    def replace(self, partition: int, gone: Collection[int]) -> bool:
        """Give replicas new homes, spread as evenly as can be; the others stay where they are.

        :param gone: brokers of the partition that are to give it up.
        :returns: whether there are brokers for all of them; nothing is changed where not.
        """
        row = [int(b) for b in self._layout.rows[partition] if b != NONE]
        keep = [broker for broker in row if broker not in gone]
        tree = self._tree.of(partition)
        free = self._layout.fits(partition) & tree.hosts
        free[row] = False
        if int(free.sum()) < len(row) - len(keep):
            return False
        try:
            chosen = self._choose(partition, tree, keep, len(row), free)
        except NoPlaceError:
            chosen = []
        if len(chosen) < len(row) or not set(keep) <= set(chosen):
            chosen = self._one_by_one(tree, keep, len(row), free)
        self._write(partition, row, chosen)
        return True

    def _one_by_one(self, tree: RackTree, keep: list[int], replicas: int, free: Mask) -> list[int]:
        """Brokers beside those that stay, each where it spreads them most evenly by then."""
        chosen = list(keep)
        while len(chosen) < replicas:
            brokers = np.flatnonzero(free & ~np.isin(np.arange(len(free)), chosen))
            rows = np.tile(np.array([*chosen, NONE], np.int32), (len(brokers), 1))
            rows[:, -1] = brokers
            full = self.fullness.of(self._tree.height, brokers)
            best = np.lexsort((full, tree.violations(rows)))[0]
            chosen.append(int(brokers[best]))
        return chosen

    def weight(self, partition: int) -> int:
        """What one replica of the partition weighs: its bytes, and something for being one."""
        return int(self._layout.size[partition]) + self._overhead

    def _choose_where_it_fits(
        self, partition: int, keep: list[int], replicas: int, free: Mask
    ) -> list[int]:
        """The same among the brokers with room only: then the spread may be less even."""
        hosts = free.copy()
        hosts[keep] = True
        tree = RackTree(self._tree.paths, hosts, self._tree.max_replicas, self._tree.order)
        if int(hosts.sum()) >= replicas:
            return self._choose(partition, tree, keep, replicas, free)
        name: TopicPartition = self._layout.arrays.partition(partition)
        limits = "" if self._layout.arrays.limits is None else " by their caps and broker sets,"
        problem = (
            f"{name} ({int(self._layout.size[partition])} bytes) needs {replicas} brokers, but "
            f"only {int(hosts.sum())} of the allowed ones{limits} take new replicas and have the "
            "disk space for it in one log dir."
        )
        raise InvalidRequestError([problem])

    def _choose(
        self, partition: int, tree: RackTree, keep: list[int], replicas: int, free: Mask
    ) -> list[int]:
        """The brokers that are to hold the partition; new ones in the order of their places.

        :raises NoPlaceError: a branch that must hold a replica has no free broker.
        """
        if self._topics is None:
            return choose(tree, keep, replicas, free, self.fullness)
        self._topics.look_at(partition, free)
        return choose(tree, keep, replicas, free, self._topics)

    def _write(self, partition: int, row: Sequence[int], chosen: Sequence[int]) -> None:
        kept = set(chosen)
        is_new = iter([broker for broker in chosen if broker not in row])
        seen: set[int] = set()
        target = []
        for broker in row:
            keeps = broker in kept and broker not in seen
            seen.add(broker)
            target.append(broker if keeps else next(is_new, NONE))
        target = [broker for broker in [*target, *is_new] if broker != NONE]
        width = self._layout.rows.shape[1]
        before = self._layout.rows[partition].tolist()
        for slot, broker in enumerate([*target, *[NONE] * (width - len(target))]):
            if broker != before[slot]:
                self._layout.move(partition, slot, broker)
        weight = self.weight(partition)
        for broker in set(row) ^ set(target):
            self.fullness.add(broker, weight if broker in target else -weight)
            if self._topics is not None:
                self._topics.add(partition, broker, 1 if broker in target else -1)
