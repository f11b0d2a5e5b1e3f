"""Complete replica sets: which replicas to keep, and which brokers get the missing ones.

The spread rule comes first (see ``rack_spread``). Ties go to the least loaded branch, and inside it
to the least loaded broker: longest-processing-time-first, as partitions are taken largest first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.kafka import TopicPartition
from rehome.domain.text import bytes_text, count_text
from rehome.errors import InvalidRequestError
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.topic_bands import TopicBands
from rehome.planning.placement.rack_spread import Free, NoPlaceError, Preference, choose
from rehome.planning.placement.topic_counts import TopicCounts

REPLICA_OVERHEAD = 0.1
"""Weight of a replica in addition to its bytes, in mean replica sizes, so that small and empty
replicas are spread as well.
"""


def replica_overhead(layout: Layout) -> int:
    """Weight of each replica in addition to its bytes."""
    mean = float(layout.size.mean()) if len(layout.size) else 0.0
    return max(1, round(REPLICA_OVERHEAD * mean))


class Fullness(Preference):
    """Load of brokers and of the branches above them, per unit of capacity. As a Preference: the
    emptiest first.

    :param weight: (B,) what each broker holds.
    :param capacity: (B,) relative size of the brokers.
    """

    def __init__(self, tree: RackTree, weight: Floats, capacity: Floats) -> None:
        self._weight = [
            np.bincount(node[tree.hosts], weight[tree.hosts], minlength=len(room))
            for node, room in zip(tree.node, tree.capacity, strict=True)
        ]
        self._capacity = [
            np.maximum(np.bincount(node, capacity * tree.hosts), 1e-9) for node in tree.node
        ]
        self._relative = [
            weight / capacity for weight, capacity in zip(self._weight, self._capacity, strict=True)
        ]
        # The same memory, whose single values are read several times as fast.
        self._values: list[tuple[list[int], Any, Any, Any]] = [
            (node, weights.data, capacities.data, relative.data)
            for node, weights, capacities, relative in zip(
                tree.lists.node, self._weight, self._capacity, self._relative, strict=True
            )
        ]
        self._hosts: list[bool] = tree.hosts.tolist()

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        """(n,) weight per capacity; ``node`` and ``short`` are ignored."""
        return self.of(level + 1, children)

    def first(self, level: int, node: int, children: Ints) -> int:
        """Index of the emptiest; of equals, the first one."""
        return int(self.of(level + 1, children).argmin())

    def of_one(self, level: int, node: int) -> float:
        """The same of a single node."""
        relative: float = self._values[level][3][node]
        return relative

    def is_fuller(self, level: int, node: int, child: int, *, times: float, without: int) -> bool:
        """Whether a child is fuller than so many times its node, after subtracting ``without``."""
        _, weights, capacities, _ = self._values[level + 1]
        limit: float = self._values[level][3][node] * times
        relative: float = (weights[child] - without) / capacities[child]
        return relative > limit

    def of(self, level: int, nodes: Ints, *, without: int = 0) -> Floats:
        """Weight per capacity of nodes on a level, after subtracting ``without`` from each."""
        if not without:
            of_all: Floats = self._relative[level][nodes]
            return of_all
        relative: Floats = (self._weight[level][nodes] - without) / self._capacity[level][nodes]
        return relative

    def add(self, broker: int, weight: int) -> None:
        """Add weight to a broker, if it may host replicas."""
        if self._hosts[broker]:
            for node, weights, capacities, relative in self._values:
                at = node[broker]
                weights[at] += weight
                relative[at] = weights[at] / capacities[at]


class SpreadFirst(Preference):
    """A Preference for the spread of topics: brokers below the topic's band first, then those that
    may hold more of it; ties go to the emptiest.
    """

    def __init__(self, tree: RackTree, fullness: Fullness, counts: TopicCounts) -> None:
        self._fullness, self._counts = fullness, counts
        self._tiers: dict[int, npt.NDArray[np.int8]] = {}
        self._height = tree.height
        # every node has brokers: these are the first ones of each, in the order of the nodes
        self._groups = [
            (np.argsort(node, kind="stable"), np.r_[0, np.bincount(node).cumsum()[:-1]])
            for node in tree.node
        ]

    def set_partition(self, partition: int, free: Mask) -> None:
        """Set the partition, and the brokers (B,), that the next calls of ``rank`` are for."""
        counts = self._counts
        cells = counts.cells_of_topic(partition)
        replicas = counts.replicas[cells]
        tier = (replicas >= counts.high[cells]).astype(np.int8) + (replicas >= counts.low[cells])
        tier[~free] = 3
        self._tiers = {self._height: tier}

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        """(n,) ranks; lower is preferred."""
        full = self._fullness.rank(level, node, children, short)
        ranks = np.empty(len(children))
        ranks[np.lexsort((full, self._tiers_on(level + 1)[children]))] = np.arange(len(children))
        return ranks

    def first(self, level: int, node: int, children: Ints) -> int:
        """Index of the child of the lowest rank."""
        tiers = self._tiers_on(level + 1)[children]
        best = np.flatnonzero(tiers == tiers.min())
        return int(best[self._fullness.first(level, node, children[best])])

    def _tiers_on(self, level: int) -> npt.NDArray[np.int8]:
        """The lowest tier of the brokers below each node of a level."""
        tiers = self._tiers.get(level)
        if tiers is None:
            order, starts = self._groups[level]
            tiers = np.minimum.reduceat(self._tiers[self._height][order], starts)
            self._tiers[level] = tiers
        return tiers

    def add(self, partition: int, broker: int, replicas: int) -> None:
        """Count more replicas of the partition's topic on the broker."""
        self._counts.replicas[self._counts.cell(partition, broker)] += replicas


class _FreeAmong:
    """Which brokers may get a new copy of a partition whose space is known; only those that are
    asked about are looked at.

    :param may: (B,) brokers that may get new copies.
    :ivar size: of the partition.
    """

    def __init__(self, layout: Layout, may: Mask) -> None:
        self._layout, self._may, self.size = layout, may, 0

    def __getitem__(self, brokers: Ints, /) -> Mask:
        free: Mask = self._may[brokers] & self._layout.have_space(brokers, self.size)
        return free


class Placer:
    """Completes replica sets of a layout under one rack tree.

    :param capacity: (B,) relative size of the brokers; loads are compared per unit of it.
    :param takes: (B,) brokers that new replicas may go to; None = all that host any.
    :param bands: of topics: brokers below a topic's band come first, those at its upper end last;
        None = the emptiest come first.
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
        self._among = _FreeAmong(layout, tree.hosts & layout.arrays.brokers.takes & self._takes)
        self._tree = tree
        self._smaller: dict[tuple[int, bytes], RackTree] = {}
        self._overhead = replica_overhead(layout)
        self._size = layout.size.data  # single values of which are read faster
        weight = (layout.load + layout.count * self._overhead).astype(float)
        self.fullness = Fullness(tree, weight, capacity)
        self._topics = None
        if bands is not None:
            self._topics = SpreadFirst(
                tree, self.fullness, TopicCounts.of_replicas(bands, layout.rows)
            )

    def complete(self, partition: int, replicas: int) -> None:
        """Give the partition that many replicas, spread evenly, with the fewest new copies.

        Replicas on brokers that may not host are removed. A new replica takes the position of the
        one it replaces; the others keep their order.

        :raises InvalidRequestError: no allowed broker has disk space for a replica.
        """
        row = [b for b in self._layout.rows[partition].tolist() if b != NONE]
        tree = self._tree.of(partition)
        keep = [broker for broker in dict.fromkeys(row) if tree.hosts[broker]]
        self._write(partition, row, self._brokers_of(partition, tree, row, keep, replicas))

    def _brokers_of(
        self, partition: int, tree: RackTree, row: list[int], keep: list[int], replicas: int
    ) -> list[int]:
        """The brokers that are to hold a partition: evenly spread if there is space for that."""
        if self._topics is None and self._layout.space_is_known(partition):
            self._among.size = self._size[partition]
            with suppress(NoPlaceError):
                return self._choose(partition, tree, keep, replicas, self._among)
        free = self._layout.fits(partition) & tree.hosts & self._takes
        free[row] = False
        try:
            return self._choose(partition, tree, keep, replicas, free)
        except NoPlaceError:
            chosen = self._choose_where_it_fits(partition, keep, replicas, free)
        if len(keep) <= replicas <= len(keep) + int(free.sum()):
            others = self._one_by_one(tree, keep, replicas, free)
            both = np.array([chosen, others], np.int32)
            if np.diff(tree.unevenness_of(np.array([partition] * 2), both))[0] < 0:
                return others
        return chosen

    def put_back(self, partition: int, row: Rows) -> None:
        """Put the replicas of a partition back where they were before it was completed.

        :param row: (R,) brokers then.
        """
        after, before = (
            [broker for broker in each.tolist() if broker != NONE]
            for each in (self._layout.rows[partition], row)
        )
        self._layout.put_back(partition, row)
        self._count(partition, after, before)

    def replace(self, partition: int, gone: Collection[int]) -> bool:
        """Move replicas to other brokers, spread as evenly as possible; the others stay.

        :param gone: brokers of the partition that must no longer hold it.
        :returns: whether there are brokers for all of them; if not, nothing is changed.
        """
        row = [b for b in self._layout.rows[partition].tolist() if b != NONE]
        keep = [broker for broker in row if broker not in gone]
        tree = self._without(self._tree.of(partition), gone)
        free = self._layout.fits(partition) & tree.hosts
        free[row] = False
        if int(free.sum()) < len(row) - len(keep):
            return False
        outside = [broker for broker in keep if not tree.hosts[broker]]  # it evens out no rack
        inside, count = [b for b in keep if tree.hosts[b]], len(row) - len(outside)
        try:
            chosen = self._choose(partition, tree, inside, count, free)
        except NoPlaceError:
            chosen = []
        if len(chosen) < count or not set(inside) <= set(chosen):
            chosen = self._one_by_one(tree, inside, count, free)
        self._write(partition, row, [*outside, *chosen])
        return True

    def _without(self, tree: RackTree, gone: Collection[int]) -> RackTree:
        """The tree of the other brokers: a live broker with a failed log dir may host others."""
        left = tree.hosts.copy()
        left[list(gone)] = False
        if (left == tree.hosts).all():
            return tree
        key = id(tree), left.tobytes()
        if key not in self._smaller:
            self._smaller[key] = RackTree(tree.paths, left, tree.max_replicas, tree.order)
        return self._smaller[key]

    def _one_by_one(self, tree: RackTree, keep: list[int], replicas: int, free: Mask) -> list[int]:
        """Greedy choice: brokers in addition to those that stay, each the one with the most even
        result so far, level by level from the root down; of equals, the one with fewest beside it.
        """
        chosen = list(keep)
        while len(chosen) < replicas:
            brokers = np.flatnonzero(free & ~np.isin(np.arange(len(free)), chosen))
            rows = np.tile(np.array([*chosen, NONE], np.int32), (len(brokers), 1))
            rows[:, -1] = brokers
            full = self.fullness.of(self._tree.height, brokers)
            beside = [
                (node[brokers][:, None] == node[chosen]).sum(axis=1) for node in tree.node[1:]
            ]
            ranks = zip(beside[::-1], tree.violations_by_level(rows)[::-1], strict=True)
            best = np.lexsort((full, *chain.from_iterable(ranks)))[0]
            chosen.append(int(brokers[best]))
        return chosen

    def weight(self, partition: int) -> int:
        """Weight of one replica of the partition: its bytes plus the overhead."""
        return self._size[partition] + self._overhead

    def _choose_where_it_fits(
        self, partition: int, keep: list[int], replicas: int, free: Mask
    ) -> list[int]:
        """The same with only those brokers that have disk space: the spread may be less even
        then.
        """
        hosts = free.copy()
        hosts[keep] = True
        tree = RackTree(self._tree.paths, hosts, self._tree.max_replicas, self._tree.order)
        if int(hosts.sum()) >= replicas:
            return self._choose(partition, tree, keep, replicas, free)
        name: TopicPartition = self._layout.arrays.partition(partition)
        limits = "" if self._layout.arrays.limits is None else " by their caps and broker sets,"
        problem = (
            f"{name} ({bytes_text(self._layout.size[partition])}) needs "
            f"{count_text(replicas, 'broker')}, but only {int(hosts.sum())} of the "
            f"allowed ones{limits} take new replicas and have the disk space for it in one log dir."
        )
        raise InvalidRequestError([problem])

    def _choose(
        self, partition: int, tree: RackTree, keep: list[int], replicas: int, free: Free
    ) -> list[int]:
        """The brokers that are to hold the partition; new ones in the order of their positions.

        :raises NoPlaceError: a branch that must hold a replica has no free broker.
        """
        if self._topics is None:
            return choose(tree, keep, replicas, free, self.fullness)
        self._topics.set_partition(partition, np.asarray(free))
        return choose(tree, keep, replicas, free, self._topics)

    def _write(self, partition: int, row: Sequence[int], chosen: Sequence[int]) -> None:
        is_new = iter([broker for broker in chosen if broker not in row])
        target = [
            broker if broker in chosen and row.index(broker) == at else next(is_new, NONE)
            for at, broker in enumerate(row)
        ]
        target = [broker for broker in (*target, *is_new) if broker != NONE]
        before = self._layout.rows[partition].tolist()
        after = target + [NONE] * (len(before) - len(target))
        for position, (was, broker) in enumerate(zip(before, after, strict=True)):
            if broker != was:
                self._layout.move(partition, position, broker)
        self._count(partition, row, target)

    def _count(self, partition: int, before: Sequence[int], after: Sequence[int]) -> None:
        weight = self.weight(partition)
        for broker in set(before) ^ set(after):
            self.fullness.add(broker, weight if broker in after else -weight)
            if self._topics is not None:
                self._topics.add(partition, broker, 1 if broker in after else -1)
