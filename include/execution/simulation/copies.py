"""Copies that share the throttled links of brokers: max-min fair, as TCP about does."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from include.cluster.model import BrokerId, TopicPartition

CopyId = tuple[TopicPartition, BrokerId]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
DONE_BELOW_BYTES = 1e-3


def max_min_rates(source: Ints, destination: Ints, capacity: Floats) -> Floats:
    """Rate of each flow over two links, max-min fair (Bertsekas and Gallager, 6.5.2).

    :param source, destination: each flow's links, as indexes into ``capacity``.
    :param capacity: bytes per second of each link.
    """
    rates = np.zeros(len(source))
    left = capacity.astype(np.float64).copy()
    open_flows = np.arange(len(source))
    links = len(capacity)
    while len(open_flows):
        out, into = source[open_flows], destination[open_flows]
        flows = np.bincount(out, minlength=links) + np.bincount(into, minlength=links)
        share = left / np.maximum(flows, 1)
        least = np.minimum(share[out], share[into])
        slack = np.bincount(out, least < share[out], links)
        slack += np.bincount(into, least < share[into], links)
        fixed = (slack[out] == 0) | (slack[into] == 0)
        rates[open_flows[fixed]] = least[fixed]
        left -= np.bincount(out[fixed], least[fixed], links)
        left -= np.bincount(into[fixed], least[fixed], links)
        left = np.maximum(left, 0.0)
        open_flows = open_flows[~fixed]
    return rates


class Copies:
    """Every copy in flight, with what it still lacks.

    :param brokers: ids; each has one link out and one in.
    """

    def __init__(self, brokers: Collection[BrokerId]) -> None:
        self._index = {broker: place for place, broker in enumerate(sorted(brokers))}
        self._ids: list[CopyId] = []
        self._source: Ints = np.zeros(0, np.int64)
        self._destination: Ints = np.zeros(0, np.int64)
        self._remaining: Floats = np.zeros(0)
        self._rates: Floats = np.zeros(0)
        self._stale = False
        self.capacity: Floats = np.zeros(2 * len(self._index))

    def __len__(self) -> int:
        return len(self._ids)

    def set_rate(self, rate_bytes_per_s: float, live: Collection[BrokerId]) -> None:
        """Let every live broker send and receive so much; dead ones nothing."""
        alive = [broker in live for broker in self._index]
        self.capacity = np.array(alive * 2) * float(rate_bytes_per_s)
        self._stale = True

    def start(self, copies: Collection[tuple[CopyId, BrokerId, int]]) -> None:
        """Begin copies: id, the leader that they read from, bytes."""
        ids, sources, sizes = [list(column) for column in zip(*copies, strict=True)]
        count = len(self._index)
        self._ids += ids
        sources = [self._index[broker] for broker in sources]
        into = [count + self._index[broker] for _, broker in ids]
        self._source = np.append(self._source, np.array(sources, np.int64))
        self._destination = np.append(self._destination, np.array(into, np.int64))
        self._remaining = np.append(self._remaining, np.array(sizes, np.float64))
        self._stale = True

    def stop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the copies of these partitions."""
        gone = set(partitions)
        self._keep(np.array([partition not in gone for partition, _ in self._ids], bool))

    def read_from(self, partition: TopicPartition, leader: BrokerId) -> None:
        """Go on with a partition's copies from another leader."""
        for place, (found, _) in enumerate(self._ids):
            if found == partition:
                self._source[place] = self._index[leader]
        self._stale = True

    def remaining(self) -> dict[CopyId, int]:
        """Bytes that each copy lacks."""
        return dict(zip(self._ids, np.ceil(self._remaining).astype(int).tolist(), strict=True))

    def next_end_s(self) -> float:
        """Seconds until a copy is complete; infinite when none moves."""
        if self._stale:
            self._rates = max_min_rates(self._source, self._destination, self.capacity)
            self._stale = False
        moving = self._rates > 0
        if not moving.any():
            return float("inf")
        return float((self._remaining[moving] / self._rates[moving]).min())

    def run(self, seconds: float) -> list[CopyId]:
        """Let so much time pass, at rates of its beginning; the copies that became complete.

        A copy that ends within that time leaves its share unused for the rest of it.
        """
        self.next_end_s()
        self._remaining = self._remaining - self._rates * seconds
        complete = self._remaining <= DONE_BELOW_BYTES
        if not complete.any():
            return []
        ended = [self._ids[place] for place in np.flatnonzero(complete)]
        self._keep(~complete)
        return ended

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self._ids = [self._ids[place] for place in np.flatnonzero(kept)]
        self._source, self._destination = self._source[kept], self._destination[kept]
        self._remaining = self._remaining[kept]
        self._stale = True
