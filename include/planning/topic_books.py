"""The books on how many replicas of each topic brokers hold, while a rebalance is searched for."""

from __future__ import annotations

import numpy as np

from include.planning.arrays import Ints, Mask, Rows
from include.planning.topic_bands import TopicBands, beyond


class TopicBooks:
    """What brokers hold of each topic against its bands. A *cell* is a topic on a broker:
    ``row · B + broker``.

    :ivar held: (cells,) replicas, or leaders; ``low``, ``high``: their bands.
    :ivar rows, brokers: T + 1 and B, see TopicBands.
    """

    def __init__(self, row: Ints, held: Ints, low: Ints, high: Ints) -> None:
        self._row = row
        self.rows, self.brokers = len(held), held.shape[1]
        self.held, self.low, self.high = (of.reshape(-1) for of in (held, low, high))

    @classmethod
    def of_replicas(cls, bands: TopicBands, rows: Rows) -> TopicBooks:
        """The books on replicas under (P, R) rows."""
        return cls(bands.row, bands.counts(rows), bands.low, bands.high)

    @classmethod
    def of_leaders(cls, bands: TopicBands, rows: Rows) -> TopicBooks:
        """The books on the preferred leaders."""
        return cls(bands.row, bands.leaders(rows), bands.led_low, bands.led_high)

    def cells(self, partitions: Ints | int, brokers: Ints | Rows | int) -> Ints:
        """The cells of the partitions' topics on these brokers; broadcasts."""
        cells: Ints = self._row[partitions] * self.brokers + brokers
        return cells

    def cell(self, partition: int, broker: int) -> int:
        """The same for one."""
        return int(self._row[partition]) * int(self.brokers) + broker

    def topic(self, partitions: Ints) -> Ints:
        """The row of each partition's topic."""
        rows: Ints = self._row[partitions]
        return rows

    def banded(self, partitions: Ints) -> Mask:
        """Whether the partitions' topics have bands."""
        banded: Mask = self._row[partitions] < self.rows - 1
        return banded

    def leaving(self, cells: Ints) -> Ints:
        """What bands are missed by more when one replica leaves each cell: -1, 0 or 1."""
        held = self.held[cells]
        change: Ints = (held <= self.low[cells]).astype(np.int64) - (held > self.high[cells])
        return change

    def arriving(self, cells: Ints) -> Ints:
        """The same when one arrives."""
        held = self.held[cells]
        change: Ints = (held >= self.high[cells]).astype(np.int64) - (held < self.low[cells])
        return change

    def takes(self, cells: Ints) -> Mask:
        """Whether one more replica leaves the cells within their bands, or brings them closer."""
        takes: Mask = self.held[cells] < self.high[cells]
        return takes

    def takes_one(self, partition: int, broker: int) -> bool:
        """The same for one."""
        cell = self.cell(partition, broker)
        return bool(self.held[cell] < self.high[cell])

    def moving(self, partitions: Ints, sources: Ints | Rows, targets: Ints | Rows) -> Ints:
        """What bands are missed by more when replicas move, each for itself; broadcasts."""
        leaves = self.leaving(self.cells(partitions, sources))
        return leaves + self.arriving(self.cells(partitions, targets))

    def spare(self, cells: Ints) -> Mask:
        """Which of replicas that leave these cells, one each, do so without a band being missed;
        of those of one cell the first ones.
        """
        order = np.argsort(cells, kind="stable")
        ordered = cells[order]
        rank = np.arange(len(cells)) - np.searchsorted(ordered, ordered)
        allowed = np.zeros(len(cells), bool)
        allowed[order] = rank < self.held[ordered] - self.low[ordered]
        return allowed

    def outside(self) -> int:
        """Replicas that brokers hold above their bands and lack below them."""
        return int(beyond(self.held, self.low, self.high).sum())
