"""A plan's moves joined with the snapshot: what each means for brokers and log dirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rehome.domain.array_types import Ints, Mask
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId
from rehome.quality.facts.partitions import Partitions
from rehome.quality.facts.ragged_lists import Ragged


@dataclass(frozen=True)
class NamedLogDir:
    """A log dir that a move names, other than the replica's present one.

    :param move: number of the move's row.
    :param within: whether the replica is on that broker already, in another log dir.
    """

    move: int
    broker: BrokerId
    path: str
    within: bool
    size_bytes: int


class Moved:
    """The n rows of moves.parquet, with their partitions in the snapshot.

    :ivar at: (n,) index of each partition in ``partitions``; -1 = it does not exist.
    :ivar size: (n,) bytes of one replica, by the snapshot; else by the plan.
    """

    def __init__(self, moves: pa.Table, partitions: Partitions) -> None:
        self.table = moves
        self.partitions = partitions
        self.at = partitions.find(moves.column("topic"), moves.column("partition"))
        self.current = Ragged.of_column(moves.column("current"))
        self.target = Ragged.of_column(moves.column("target"))
        self.size: Ints = self._of_snapshot(
            partitions.size_bytes, moves.column("size_bytes").to_numpy().astype(np.int64)
        )

    def _of_snapshot(self, values: Ints, otherwise: Ints) -> Ints:
        if not len(values):
            return otherwise
        amounts: Ints = np.where(self.at >= 0, values[self.at], otherwise)
        return amounts

    @cached_property
    def adding(self) -> Ragged:
        """Brokers that receive a copy."""
        return self.target.where(self.target.missing_in(self.current))

    @cached_property
    def removing(self) -> Ragged:
        """Brokers that lose their replica."""
        return self.current.where(self.current.missing_in(self.target))

    @cached_property
    def in_sync(self) -> Ragged:
        """Brokers whose replica is in the ISR."""
        return self.partitions.chosen_at(self.at, self.partitions.in_sync)

    @cached_property
    def offline(self) -> Ragged:
        """Brokers whose replica is offline: they are dead, or a log dir has failed."""
        return self.partitions.chosen_at(self.at, self.partitions.offline)

    @cached_property
    def leader(self) -> Ints:
        """(n,) broker that leads now; -1 = none."""
        no_leader = np.full(len(self.at), -1, np.int64)
        return self._of_snapshot(self.partitions.leader, no_leader)

    @cached_property
    def in_flight(self) -> Mask:
        """(n,) partitions that are being reassigned."""
        busy = self._of_snapshot(self.partitions.in_flight.astype(np.int64), np.zeros_like(self.at))
        return busy.astype(bool)

    @cached_property
    def times_planned(self) -> Ints:
        """(n,) rows of the same partition; the table is sorted by partition."""
        if not len(self.at):
            return np.zeros(0, np.int64)
        topic = self.table.column("topic").combine_chunks().dictionary_encode()
        code = topic.indices.to_numpy().astype(np.int64)
        number = self.table.column("partition").to_numpy().astype(np.int64)
        _, same, times = np.unique(
            code * (1 << 32) + number, return_inverse=True, return_counts=True
        )
        counted: Ints = times[same]
        return counted

    @cached_property
    def named_log_dirs(self) -> list[NamedLogDir]:
        """Every log dir that a move names and that must be set."""
        return list(self._named_log_dirs())

    def _named_log_dirs(self) -> Iterator[NamedLogDir]:
        column = self.table.column("target_log_dirs")
        lengths = pc.list_value_length(column).to_numpy()
        rows = np.flatnonzero(lengths > 0)
        chosen = pa.array(rows)
        targets = self.table.column("target").take(chosen).to_pylist()
        paths = column.take(chosen).to_pylist()
        today = self.lies_in(rows)
        for row, brokers, row_paths, dir_today in zip(
            rows.tolist(), targets, paths, today, strict=True
        ):
            for broker, path in zip(brokers, row_paths, strict=False):
                if path not in (ANY_LOG_DIR, dir_today.get(broker)):
                    within = broker in dir_today
                    size = self._stored_bytes(row, broker) if within else int(self.size[row])
                    yield NamedLogDir(row, broker, path, within, size)

    def _stored_bytes(self, row: int, broker: BrokerId) -> int:
        """Size of a broker's own replica: that is what moves between its log dirs."""
        replicas, p = self.partitions.replicas, int(self.at[row])
        first, end = replicas.offsets[p : p + 2].tolist()
        at = first + replicas.values[first:end].tolist().index(broker)
        return int(self.partitions.stored_bytes[at])

    def lies_in(self, rows: Ints) -> list[dict[BrokerId, str]]:
        """Broker → log dir of the replicas of these rows' partitions, as the snapshot has them."""
        replicas, log_dirs = self.partitions.lists_at(self.at[rows])
        pairs = zip(replicas.to_pylist(), log_dirs.to_pylist(), strict=True)
        return [dict(zip(brokers or (), paths or (), strict=True)) for brokers, paths in pairs]

    def bytes_within(self) -> Counter[BrokerId]:
        """Bytes per broker that move from one of its log dirs to another."""
        bytes_by_broker: Counter[BrokerId] = Counter()
        for item in self.named_log_dirs:
            if item.within:
                bytes_by_broker[item.broker] += item.size_bytes
        return bytes_by_broker
