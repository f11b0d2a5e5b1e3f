"""Where every replica is while a plan is being made, and what each broker holds because of it."""

from __future__ import annotations

import numpy as np

from include.planning.arrays import NONE, ClusterArrays, Ints, Mask, Rows, fresh


class Layout:
    """The replica sets as planned so far; changed in place, slot by slot.

    A copy stays on its old broker until the new one is complete, so disk room is counted for
    the moment at which everything has arrived and nothing has left.

    :ivar home: (P, R) dense broker indexes as the snapshot has them.
    :ivar rows: (P, R) as planned; widened where the replication factor grows.
    :ivar load: (B,) bytes held under ``rows``; ``count`` is the number of replicas.
    :ivar incoming: (B,) bytes of replicas that the plan copies to a broker.
    """

    def __init__(self, arrays: ClusterArrays, width: int | None = None) -> None:
        pad = max(0, (width or 0) - arrays.rows.shape[1])
        self.arrays = arrays
        self.size: Ints = arrays.size_bytes
        self.home: Rows = arrays.rows
        if pad:
            self.home = np.pad(arrays.rows, ((0, 0), (0, pad)), constant_values=NONE)
        self.rows: Rows = self.home.copy()
        self._held = arrays.load(self.rows, self.size), arrays.load(self.rows, None)
        self.load, self.count = (held.copy() for held in self._held)
        self.incoming = np.zeros(len(arrays.brokers.ids), np.int64)
        self.room: Ints = arrays.brokers.room_bytes

    def fits(self, size_bytes: int) -> Mask:
        """(B,) brokers that take new replicas and have room for one of this size."""
        fits: Mask = self.arrays.brokers.takes & (self.incoming + size_bytes <= self.room)
        return fits

    def move(self, partition: int, slot: int, broker: int) -> None:
        """Put the replica in this slot on another broker; ``NONE`` as either side is allowed."""
        size, was = int(self.size[partition]), int(self.rows[partition, slot])
        self._add(partition, was, -size, -1)
        self._add(partition, broker, size, 1)
        self.rows[partition, slot] = broker

    def _add(self, partition: int, broker: int, size: int, count: int) -> None:
        if broker == NONE:
            return
        self.load[broker] += size
        self.count[broker] += count
        if not (self.home[partition] == broker).any():
            self.incoming[broker] += size

    def lay_out(self, rows: Rows) -> None:
        """Put every replica where ``rows`` has it."""
        self.rows[:] = rows
        self.refresh()

    def refresh(self) -> None:
        """Count anew what brokers hold and receive, after rows were changed directly."""
        changed = self.changed()
        rows, home, size = self.rows[changed], self.home[changed], self.size[changed]
        self.load, self.count = (
            held + self.arrays.load(rows, weight) - self.arrays.load(home, weight)
            for held, weight in zip(self._held, (size, None), strict=True)
        )
        self.incoming = self.arrays.load(np.where(fresh(rows, home), rows, NONE), size)

    def changed(self) -> Ints:
        """Partitions whose replica set, in its order, is not what it was."""
        changed = np.zeros(len(self.rows), bool)
        for now, before in zip(self.rows.T, self.home.T, strict=True):
            changed |= now != before
        return np.flatnonzero(changed)
