"""Which movable replicas each broker holds."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask, Rows


class ReplicaIndex:
    """The movable replicas by broker, while a search moves them: sorted once, then arrivals are
    added. A replica that has left is skipped when it is read.

    :param flat: (P · R,) the broker of each replica; the search changes this array in place.
    :param partitions: (P,) that may move.
    :param gives: (B,) brokers whose replicas may move.
    """

    def __init__(self, flat: Rows, partitions: Mask, gives: Mask) -> None:
        self._flat, self._partitions, self._gives = flat, partitions, gives
        self._sort()

    def _sort(self) -> None:
        """Sort the replicas by broker; those that may not move come last."""
        brokers, width = len(self._gives), len(self._flat) // max(len(self._partitions), 1)
        owner = self._flat.astype(np.int16 if brokers < 2**15 - 1 else np.int32)
        owner[owner == NONE] = brokers
        owner[np.repeat(~self._partitions, width)] = brokers
        if not self._gives.all():
            owner[np.append(~self._gives, True)[owner]] = brokers
        self._by_broker: Ints = np.argsort(owner, kind="stable")
        self._ends: list[int] = [0, *np.cumsum(np.bincount(owner, minlength=brokers)).tolist()]
        self._first = self._flat.copy()
        self._arrived: list[dict[int, None]] = [{} for _ in self._gives]
        self._sorted = True

    def on(self, broker: int) -> Ints:
        """The movable replicas that a broker holds."""
        if not self._sorted:
            self._sort()
        replicas = self._by_broker[self._ends[broker] : self._ends[broker + 1]]
        arrived = self._arrived[broker]
        if arrived:
            replicas = np.concatenate([replicas, np.fromiter(arrived, np.int64, len(arrived))])
        on_broker: Ints = replicas[self._flat[replicas] == broker]
        return on_broker

    def arrive_one(self, replica: int, broker: int) -> None:
        """Add one replica to a broker's."""
        if self._first[replica] != broker:
            self._arrived[broker][replica] = None

    def arrive(self, replicas: Ints, brokers: Ints) -> None:
        """The same for several; without effect if all are to be sorted again anyway."""
        if not self._sorted:
            return
        new = self._first[replicas] != brokers
        for replica, broker in zip(replicas[new].tolist(), brokers[new].tolist(), strict=True):
            self._arrived[broker][replica] = None

    def sort_again(self) -> None:
        """Sort all replicas at the next use."""
        self._sorted = False
