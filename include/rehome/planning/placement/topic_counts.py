"""Counts of each topic's replicas per broker, kept up to date during a search."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, CellCounts, Ints, Mask, Rows
from rehome.planning.model.topic_bands import TopicBands, beyond, cells_beyond, total_beyond
from rehome.planning.placement.stable_order import turn


class TopicCounts:
    """Replicas of each topic per broker, and their bands. A *cell* is a topic on a broker: ``row ·
    B + broker``.

    :ivar replicas: (cells,) of each, or leaders; ``low``, ``high``: their bands.
    :ivar rows, brokers: T + 1 and B, see TopicBands.
    """

    def __init__(self, row: Ints, counts: CellCounts, low: CellCounts, high: CellCounts) -> None:
        self._row = row
        self.rows, self.brokers = len(counts), counts.shape[1]
        self.replicas, self.low, self.high = (of.reshape(-1) for of in (counts, low, high))

    @classmethod
    def of_replicas(cls, bands: TopicBands, rows: Rows) -> TopicCounts:
        """Counts of replicas under (P, R) rows."""
        return cls(bands.row, bands.counts(rows), bands.low, bands.high)

    @classmethod
    def of_leaders(cls, bands: TopicBands, rows: Rows) -> TopicCounts:
        """Counts of preferred leaders."""
        return cls(bands.row, bands.leaders(rows), bands.led_low, bands.led_high)

    def cells(self, partitions: Ints | int, brokers: Ints | Rows | int) -> Ints:
        """The cells of the partitions' topics on these brokers; broadcasts."""
        cells: Ints = self._row[partitions] * self.brokers + brokers
        return cells

    def cell(self, partition: int, broker: int) -> int:
        """The same for one."""
        return int(self._row[partition]) * int(self.brokers) + broker

    def cells_of_topic(self, partition: int) -> slice:
        """The cells of a partition's topic, broker by broker."""
        first = int(self._row[partition]) * self.brokers
        return slice(first, first + self.brokers)

    def topic(self, partitions: Ints) -> Ints:
        """The row of each partition's topic."""
        rows: Ints = self._row[partitions]
        return rows

    def same_topic(self, one: int, other: int) -> bool:
        """Whether two partitions are of one topic, or both of topics without bands."""
        return bool(self._row[one] == self._row[other])

    def has_bands(self, partitions: Ints) -> Mask:
        """Whether the partitions' topics have bands."""
        banded: Mask = self._row[partitions] < self.rows - 1
        return banded

    def leaving(self, cells: Ints, after: Ints | int = 0) -> Ints:
        """Change of the distance to the band when one replica leaves each cell: -1, 0 or 1.

        :param after: how many have left by then.
        """
        replicas = self.replicas[cells] - after
        change: Ints = (replicas <= self.low[cells]).astype(np.int64) - (
            replicas > self.high[cells]
        )
        return change

    def arriving(self, cells: Ints, after: Ints | int = 0) -> Ints:
        """The same when one arrives, after ``after`` others."""
        replicas = self.replicas[cells] + after
        change: Ints = (replicas >= self.high[cells]).astype(np.int64) - (
            replicas < self.low[cells]
        )
        return change

    def takes(self, cells: Ints) -> Mask:
        """Whether one more replica keeps the cells within their bands, or brings them closer."""
        takes: Mask = self.replicas[cells] < self.high[cells]
        return takes

    def takes_one(self, partition: int, broker: int) -> bool:
        """The same for one."""
        cell = self.cell(partition, broker)
        return bool(self.replicas[cell] < self.high[cell])

    def moving(self, partitions: Ints, sources: Ints | Rows, targets: Ints | Rows) -> Ints:
        """Change of the distance to the bands when replicas move, each considered alone;
        broadcasts.
        """
        leaves = self.leaving(self.cells(partitions, sources))
        return leaves + self.arriving(self.cells(partitions, targets))

    def moving_one(self, partition: int, source: int, target: int) -> int:
        """The same for one replica."""
        replicas, low, high = self.replicas, self.low, self.high
        leaves, arrives = self.cell(partition, source), self.cell(partition, target)
        here, there = int(replicas[leaves]), int(replicas[arrives])
        change = (here <= int(low[leaves])) - (here > int(high[leaves]))
        return change + (there >= int(high[arrives])) - (there < int(low[arrives]))

    def trading(self, give: Ints, take: Ints, here: Ints, there: Ints) -> Ints:
        """(n,) the same when replicas of two partitions trade places, each trade considered alone.
        Two of one topic change nothing.

        :param give: partitions whose replicas go from ``here`` to ``there``, ``take``: those whose
            replicas come back; NONE where nothing goes in that direction.
        """
        change = np.where(give != NONE, self.moving(give, here, there), 0)
        change += np.where(take != NONE, self.moving(take, there, here), 0)
        both = (give != NONE) & (take != NONE)
        change[both & (self._row[give] == self._row[take])] = 0
        return change

    def trading_one(self, give: int, take: int, here: int, there: int) -> int:
        """The same for one trade."""
        if give != NONE and take != NONE and self.same_topic(give, take):
            return 0
        change = self.moving_one(give, here, there) if give != NONE else 0
        return change + (self.moving_one(take, there, here) if take != NONE else 0)

    def move(self, partitions: Ints, sources: Ints | Rows, targets: Ints | Rows) -> None:
        """Count replicas that have moved."""
        np.subtract.at(self.replicas, self.cells(partitions, sources), 1)
        np.add.at(self.replicas, self.cells(partitions, targets), 1)

    def moving_together(
        self, partitions: Ints, sources: Ints | Rows, targets: Ints | Rows, most: int
    ) -> Mask:
        """(n,) moves that, if all are made, each increase the distance to the bands by at most
        ``most``.

        Departures and arrivals of a cell are counted separately, in order; this never
        underestimates the change.
        """
        together = np.zeros(len(partitions), bool)
        if most >= 0:
            together = ~self.has_bands(partitions)
        some = np.flatnonzero(self.has_bands(partitions))
        leaves, arrives = (self.cells(partitions[some], side[some]) for side in (sources, targets))
        kept = np.flatnonzero(self.leaving(leaves) + self.arriving(arrives) <= most)
        while len(kept):
            out, into = leaves[kept], arrives[kept]
            change = self.leaving(out, turn(out)) + self.arriving(into, turn(into))
            if (change <= most).all():
                break
            kept = kept[change <= most]
        together[some[kept]] = True
        return together

    def spare(self, cells: Ints, *, middle: bool = False) -> Mask:
        """Which replicas can leave these cells, one each, without leaving the band; of several in
        one cell, the first ones.

        :param middle: go down to the middle of the band only.
        """
        low, high = self.low[cells], self.high[cells]
        allowed: Mask = turn(cells) < self.replicas[cells] - ((low + high) // 2 if middle else low)
        return allowed

    def uneven(self, partitions: Ints) -> Mask:
        """(n,) whether the partitions' topics are outside of their band on any broker."""
        topics = np.zeros(self.rows, bool)
        topics[self.cells_outside() // self.brokers] = True
        uneven: Mask = topics[self._row[partitions]]
        return uneven

    def cells_outside(self) -> Ints:
        """The cells that are outside of their bands, ascending."""
        return cells_beyond(self.replicas, self.low, self.high)[0]

    def beyond(self, cells: Ints) -> CellCounts:
        """(n,) distance of these cells to their bands, in replicas."""
        return beyond(self.replicas[cells], self.low[cells], self.high[cells])

    def outside(self) -> int:
        """Total distance to the bands, in replicas: above and below."""
        return total_beyond(self.replicas, self.low, self.high)
