"""The layout under construction: where every replica is, and the resulting load of each broker."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.model.arrays import ClusterArrays, broker_sums, is_new
from rehome.planning.model.packing import CopyPacking, pack
from rehome.planning.model.resource_loads import placed_weights


class Layout:
    """The replica sets as planned so far; changed in place, one replica at a time.

    Kafka deletes an old replica only when the new one is complete. So disk space is checked for the
    worst moment: every copy has arrived and nothing has been deleted.

    :ivar origin: (P, R) dense broker indexes as the snapshot has them.
    :ivar rows: (P, R) as planned; widened where the replication factor grows.
    :ivar load: (B,) bytes held under ``rows``; ``count`` is the number of replicas.
    :ivar incoming: (B,) bytes of replicas that the plan copies to a broker.
    """

    def __init__(self, arrays: ClusterArrays, width: int | None = None) -> None:
        pad = max(0, (width or 0) - arrays.rows.shape[1])
        self.arrays = arrays
        self.size: Ints = arrays.size_bytes
        self.origin: Rows = arrays.rows
        if pad:
            self.origin = np.pad(arrays.rows, ((0, 0), (0, pad)), constant_values=NONE)
        self.rows: Rows = self.origin.copy()
        self._first_loads = arrays.load(self.rows, self.size), arrays.load(self.rows, None)
        self.load, self.count = (loads.copy() for loads in self._first_loads)
        self.incoming = np.zeros(len(arrays.brokers.ids), np.int64)
        self.headrooms: Ints = arrays.brokers.headrooms
        self._packing = CopyPacking(self.headrooms)
        self._limits = arrays.limits
        self._capped = np.zeros(0, np.int64) if arrays.limits is None else arrays.limits.counted
        if len(self._capped):
            self._weights = placed_weights(arrays)[self._capped]
            self._held_of = self._count_capped()
        if arrays.limits is not None:
            self._groups = arrays.limits.groups_of(arrays.topic_of)

    def _count_capped(self) -> Floats:
        """(C, B) what brokers hold of resources with caps."""
        return np.stack(
            [broker_sums(self.rows, weight, len(self.load)) for weight in self._weights]
        )

    @property
    def headroom(self) -> Ints:
        """(B,) bytes that may be written to each broker."""
        total: Ints = np.maximum(self.headrooms, 0).sum(axis=1)
        return total

    def fits(self, partition: int) -> Mask:
        """(B,) brokers that take new replicas, have a log dir with enough space for this partition,
        and may hold it by their caps and its broker set.
        """
        every, takes = slice(None), self.arrays.brokers.takes
        size_bytes = int(self.size[partition])
        fit = self._packing.fit(every, size_bytes, self.incoming)
        if self._packing.may_fit_better(every, fit | ~takes):
            self._packing.begin(self.rows, self.origin, self.size)
            fit = self._packing.fit(every, size_bytes, self.incoming)
        fits: Mask = takes & fit
        return fits if self._limits is None else fits & self.within_limits(partition)

    def space_is_known(self, partition: int) -> bool:
        """Whether :meth:`has_space` holds for any broker: neither caps nor broker sets limit it,
        and it does not depend on which log dir each copy goes into.
        """
        if self._limits is not None or self._packing.on:
            return False
        size = int(self.size[partition])
        return size <= self._packing.surely_free(self.incoming)

    def has_space(self, broker: int, size: int) -> bool:
        """Whether a broker has a log dir with space for so many bytes."""
        incoming: int = self.incoming.item(broker)
        return incoming + size <= self._packing.least.item(broker)

    def have_space(self, brokers: Ints, size: int) -> Mask:
        """(n,) the same of several brokers."""
        return self._packing.fit(brokers, size, self.incoming)

    def within_limits(self, partition: int) -> Mask:
        """(B,) brokers that may get a replica of the partition by their caps and its set."""
        limits = self._limits
        if limits is None:
            return np.ones(len(self.load), bool)
        within: Mask = limits.allowed[self._groups[partition]].copy()
        for row, k in enumerate(self._capped.tolist()):
            more = self._weights[row, partition]
            within &= (self._held_of[row] + more <= limits.placed[k]) | (more == 0)
        return within

    def may_take(self, broker: int, partitions: Ints) -> Mask:
        """(n,) partitions that the broker may get by its caps and their broker sets."""
        limits = self._limits
        if limits is None:
            return np.ones(len(partitions), bool)
        may: Mask = limits.allowed[self._groups[partitions], broker]
        for row, k in enumerate(self._capped.tolist()):
            more = self._weights[row, partitions]
            may &= (self._held_of[row, broker] + more <= limits.placed[k, broker]) | (more == 0)
        return may

    def overfull(self) -> Ints:
        """Brokers whose log dirs cannot hold the copies to them, as packed."""
        tight = np.append(self.incoming > self._packing.least, False)  # the last one is NONE's
        if not tight.any():
            return np.zeros(0, np.int64)
        new = is_new(self.rows, self.origin) & tight[self.rows]
        broker = self.rows[new].astype(np.int64)
        volume = pack(self.headrooms, broker, self.size[np.nonzero(new)[0]])
        over: Ints = np.unique(broker[volume == NONE])
        return over

    def move(self, partition: int, position: int, broker: int) -> None:
        """Move the replica at this position to another broker; ``NONE`` as either side adds or
        removes one.
        """
        size, was = int(self.size[partition]), int(self.rows[partition, position])
        self._add(partition, was, -size, -1)
        self._add(partition, broker, size, 1)
        self.rows[partition, position] = broker

    def put_back(self, partition: int, row: Rows | None = None) -> None:
        """Put the replicas of a partition back where the snapshot has them.

        :param row: (R,) where an earlier layout had them instead; None = the snapshot.
        """
        before = self.origin[partition] if row is None else row
        for position, broker in enumerate(before.tolist()):
            if broker != self.rows[partition, position]:
                self.move(partition, position, broker)

    def add_copy(self, partition: int, position: int, broker: int) -> None:
        """Add a replica on a broker that holds none of the partition, where
        :meth:`space_is_known`.
        """
        size = self.size[partition]
        self.load[broker] += size
        self.incoming[broker] += size
        self.count[broker] += 1
        self.rows[partition, position] = broker

    def _add(self, partition: int, broker: int, size: int, count: int) -> None:
        if broker == NONE:
            return
        self.load[broker] += size
        self.count[broker] += count
        if len(self._capped):
            self._held_of[:, broker] += count * self._weights[:, partition]
        if broker not in self.origin[partition].tolist():
            self.incoming[broker] += size
            if self._packing.on:
                change = self._packing.put if count > 0 else self._packing.take
                change(partition, broker, abs(size))

    def lay_out(self, rows: Rows) -> None:
        """Put every replica where ``rows`` has it."""
        self.rows[:] = rows
        self.refresh()

    def refresh(self) -> None:
        """Recompute loads and incoming bytes after rows were changed directly."""
        self._packing.end()
        changed = self.changed_partitions()
        rows, origin, size = self.rows[changed], self.origin[changed], self.size[changed]
        self.load, self.count = (
            load_before + self.arrays.load(rows, weight) - self.arrays.load(origin, weight)
            for load_before, weight in zip(self._first_loads, (size, None), strict=True)
        )
        self.incoming = self.arrays.load(np.where(is_new(rows, origin), rows, NONE), size)
        if len(self._capped):
            self._held_of = self._count_capped()

    def changed_partitions(self) -> Ints:
        """Partitions whose replica list has changed, in its members or its order."""
        changed = np.zeros(len(self.rows), bool)
        for now, before in zip(self.rows.T, self.origin.T, strict=True):
            changed |= now != before
        return np.flatnonzero(changed)


def sources(layout: Layout) -> Ints:
    """(P,) the broker that new replicas copy from: the leader, or the first replica."""
    leader = layout.arrays.leader
    source: Ints = np.where(leader != NONE, leader, layout.origin[:, 0]).astype(np.int64)
    return source


def copies(layout: Layout) -> tuple[Ints, Ints]:
    """(n,) partition and (n,) receiving broker of every copy the plan makes."""
    partition, place = np.nonzero(is_new(layout.rows, layout.origin))
    return partition, layout.rows[partition, place].astype(np.int64)
