"""Bin packing of copies into log dirs: best-fit decreasing.

The largest copy comes first, and goes where it leaves the least free space. A replica lies in one
log dir as a whole, so free space on several log dirs does not add up.
docs/decisions/014-log-dirs.md says when a plan names the log dir of a copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rehome.domain.array_types import NONE, UNLIMITED, Floats, Ints, Mask, Rows
from rehome.planning.model.arrays import is_new


def pack(headrooms: Ints, broker: Ints, size: Ints) -> Ints:
    """(n,) the volume of its broker that each copy goes into; NONE where no volume has enough
    space.

    All brokers are packed in parallel: step one places the largest copy of each broker.

    :param headrooms: (B, V) bytes, see BrokerArrays.headrooms.
    :param broker: (n,) dense indexes; ``size``: (n,) bytes.
    """
    free, chosen = headrooms.copy(), np.full(len(broker), NONE, np.int64)
    order = np.lexsort((-size, broker))
    first = np.flatnonzero(np.diff(broker[order], prepend=-1))
    left = np.diff(first, append=len(order))
    step = 0
    while len(first):
        copies = order[first + step]
        of, needed = broker[copies], size[copies]
        fits = free[of] >= needed[:, None]
        tightest = np.where(fits, free[of], np.iinfo(np.int64).max).argmin(axis=1)
        placed = fits.any(axis=1)
        chosen[copies[placed]] = tightest[placed]
        free[of[placed], tightest[placed]] -= needed[placed]
        step += 1
        first, left = first[left > step], left[left > step]
    return chosen


PackedCopies = tuple[dict[int, list[int]], dict[tuple[int, int], int], Floats, bool]
"""Saved state: free bytes per broker and volume, the volume of each copy, the largest free volume
per broker, and whether copies are tracked.
"""


class CopyPacking:
    """Tracks which volume each copy goes into while a search adds and removes copies.

    Nothing needs tracking while each log dir alone could hold all copies to its broker. Tracking
    starts at the first broker where that is no longer true.

    :ivar on: whether copies are tracked.
    """

    def __init__(self, headrooms: Ints) -> None:
        there = headrooms >= 0
        self._headrooms = headrooms
        self._several: Mask = there.sum(axis=1) > 1
        self._any_several = bool(self._several.any())
        self.least: Floats = np.where(there, headrooms, UNLIMITED).min(axis=1).astype(float)
        self.on = False
        self._widest: Floats = np.full(len(headrooms), -1.0)
        self._free: dict[int, list[int]] = {}
        self._volume_of: dict[tuple[int, int], int] = {}

    def begin(self, rows: Rows, origin: Rows, size: Ints) -> None:
        """Start tracking: pack the copies so far, then follow every change."""
        self.on = True
        new = is_new(rows, origin) & self._several[rows]
        partition, broker = np.nonzero(new)[0], rows[new].astype(np.int64)
        volume = pack(self._headrooms, broker, size[partition])
        self._free = {
            b: [free for free in self._headrooms[b].tolist() if free >= 0]
            for b in np.flatnonzero(self._several).tolist()
        }
        self._volume_of = {}
        copies = (partition, broker, volume, size[partition])
        for p, b, v, needed in zip(*(part.tolist() for part in copies), strict=True):
            volumes = self._free[b]
            v = volumes.index(max(volumes)) if v == NONE else v
            volumes[v] -= needed
            self._volume_of[p, b] = v
        for b, volumes in self._free.items():
            self._widest[b] = max(volumes)

    def end(self) -> None:
        """Stop tracking."""
        self.on = False

    def fit(self, brokers: Ints | slice, size: Ints | int, incoming: Ints | Floats) -> Mask:
        """Whether brokers have a log dir for a copy of that size each; broadcasts.

        :param incoming: (B,) bytes that are copied to each broker so far.
        """
        fit: Mask = incoming[brokers] + size <= self.least[brokers]
        if self.on:
            fit |= size <= self._widest[brokers]
        return fit

    def fits_one(self, broker: int, size: float, incoming: float) -> bool:
        """The same for one broker, without arrays."""
        if incoming + size <= self.least[broker]:
            return True
        return self.on and bool(size <= self._widest[broker])

    def surely_free(self, incoming: Ints | Floats) -> float:
        """Bytes that each broker with several log dirs has space for, whichever copy lies where;
        infinite where no broker has several.
        """
        if not self._any_several:
            return math.inf
        free: float = (self.least - incoming)[self._several].min()
        return free

    def may_fit_better(self, brokers: Ints | slice, fit: Mask) -> bool:
        """Whether tracking would find space that the check without it misses."""
        return (
            self._any_several
            and not self.on
            and not fit.all()
            and bool((~fit & self._several[brokers]).any())
        )

    def may_fit_one_better(self, broker: int) -> bool:
        """The same for one broker without space by the check without tracking."""
        return self._any_several and not self.on and bool(self._several[broker])

    def put(self, partition: int, broker: int, size: int) -> None:
        """Add a copy to a broker: best fit."""
        volumes = self._free.get(broker)
        if volumes is None:
            return
        best = -1
        for volume, free in enumerate(volumes):
            if free >= size and (best < 0 or free < volumes[best]):
                best = volume
        if best < 0:
            best = volumes.index(max(volumes))
        volumes[best] -= size
        self._volume_of[partition, broker] = best
        self._widest[broker] = max(volumes)

    def take(self, partition: int, broker: int, size: int) -> None:
        """Remove a copy."""
        volume = self._volume_of.pop((partition, broker), None)
        if volume is not None:
            volumes = self._free[broker]
            volumes[volume] += size
            self._widest[broker] = max(volumes)

    def put_all(self, partitions: Ints, brokers: Ints | Rows, sizes: Floats) -> None:
        """Add (n,) copies, if they are tracked."""
        self._each(self.put, partitions, brokers, sizes)

    def take_all(self, partitions: Ints, brokers: Ints, sizes: Floats) -> None:
        """Remove (n,) copies, if they are tracked."""
        self._each(self.take, partitions, brokers, sizes)

    def _each(
        self,
        change: Callable[[int, int, int], None],
        partitions: Ints,
        brokers: Ints | Rows,
        sizes: Floats,
    ) -> None:
        if self.on:
            copies = (partitions, brokers, sizes.astype(np.int64))
            for partition, broker, size in zip(*(part.tolist() for part in copies), strict=True):
                change(partition, broker, size)

    def save(self) -> PackedCopies:
        """The state, for :meth:`restore`."""
        free = {broker: volumes.copy() for broker, volumes in self._free.items()} if self.on else {}
        return free, self._volume_of.copy() if self.on else {}, self._widest.copy(), self.on

    def restore(self, state: PackedCopies) -> None:
        """Go back to a saved state."""
        self._free, self._volume_of, self._widest, self.on = state
