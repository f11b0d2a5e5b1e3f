"""Choose log dirs for the copies of a finished plan, and check that all fit.

By default a broker puts a new replica into the log dir with the fewest partitions, regardless of
free space; AlterReplicaLogDirs can name another one beforehand. So the plan names log dirs on
brokers where some log dir could not hold all arriving copies. On others the broker's own choice is
safe.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import NONE, UNLIMITED, Ints
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.plan.move_columns import pad_lists
from rehome.domain.plan.move_table import MOVES_SCHEMA, MoveTable
from rehome.planning.model.arrays import BrokerArrays
from rehome.planning.model.packing import pack

TIGHTER = 0.9
"""Factor on a broker's headroom when it is planned again because its copies could not be packed."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A broker whose log dirs cannot hold the copies to it.

    :param arriving_bytes: bytes of all copies; ``headrooms``: of each of its volumes, in bytes.
    :param partition: the largest one that does not fit into any log dir together with the others.
    """

    broker: BrokerId
    arriving_bytes: int
    headrooms: tuple[int, ...]
    partition: TopicPartition
    size_bytes: int

    @property
    def problem(self) -> str:
        """The error message."""
        came = f"Broker {self.broker} would receive {self.arriving_bytes} bytes, but"
        if self.arriving_bytes > sum(self.headrooms):
            return f"{came} its log dirs have room for {sum(self.headrooms)}."
        headrooms = ", ".join(str(headroom) for headroom in self.headrooms)
        return (
            f"{came} {self.partition} ({self.size_bytes} bytes) fits into no log dir beside the "
            f"others: they have room for {headrooms} bytes."
        )


@dataclass(frozen=True)
class _Copies:
    """n copies, and the volumes that moves name for some of them.

    :param row, place: (n,) row of the table, and position in the target; ``broker``: dense index.
    :param volume: (n,) the named volume; NONE = none is named.
    """

    row: Ints
    place: Ints
    broker: Ints
    size: Ints
    volume: Ints


def choose_log_dirs(
    moves: MoveTable, brokers: BrokerArrays, *, name: bool
) -> tuple[MoveTable, tuple[Misfit, ...]]:
    """The moves with log dirs where these matter, and the copies that do not fit.

    :param name: name log dirs; False: only check that copies fit.
    """
    headrooms = brokers.headrooms
    if not len(moves) or bool((headrooms[:, 0] >= UNLIMITED).all()):
        return moves, ()
    table = moves.table.combine_chunks()
    copies = _copies(table, brokers)
    arriving = np.bincount(copies.broker, copies.size, len(headrooms)).astype(np.int64)
    has_log_dir, left = copies.volume != NONE, headrooms.copy()
    np.subtract.at(
        left, (copies.broker[has_log_dir], copies.volume[has_log_dir]), copies.size[has_log_dir]
    )
    over = (left < 0) & (headrooms >= 0)
    left = np.where(over, 0, left)
    free = ~has_log_dir
    to_come = np.bincount(copies.broker[free], copies.size[free], len(headrooms))
    least = np.where(left >= 0, left, UNLIMITED).min(axis=1)
    tight = np.flatnonzero(free & (to_come > least)[copies.broker])
    volume = pack(left, copies.broker[tight], copies.size[tight])
    unplaced = tight[volume == NONE]
    named_over = np.flatnonzero(has_log_dir)[
        over[copies.broker[has_log_dir], copies.volume[has_log_dir]]
    ]
    lost = np.concatenate([unplaced, named_over])
    misfits = tuple(
        _misfit(table, brokers, copies, arriving, lost[copies.broker[lost] == b])
        for b in np.unique(copies.broker[lost]).tolist()
    )
    if misfits or not name or not brokers.volume_paths:
        return moves, misfits
    return _name_log_dirs(table, brokers, copies, tight, volume), ()


def tighten(brokers: BrokerArrays, misfits: tuple[Misfit, ...]) -> BrokerArrays:
    """The brokers, with less headroom on those where copies could not be packed."""
    headrooms = brokers.headrooms.copy()
    short = np.isin(brokers.ids, [misfit.broker for misfit in misfits])
    headrooms[short] = np.where(
        headrooms[short] > 0, (headrooms[short] * TIGHTER).astype(np.int64), headrooms[short]
    )
    return brokers.with_headrooms(headrooms)


def _copies(table: pa.Table, brokers: BrokerArrays) -> _Copies:
    current, target = (
        pad_lists(table.column(column).combine_chunks()) for column in ("current", "target")
    )
    size = table.column("size_bytes").to_numpy().astype(np.int64)
    new = (target >= 0) & (target[:, :, None] != current[:, None, :]).all(axis=2)
    within = _within(table, brokers, new)
    row, place = np.nonzero(new)
    broker = np.searchsorted(brokers.ids, target[new])
    volume = np.full(len(row), NONE, np.int64)
    extra = [(r, p, b, v) for (r, p), (b, v) in within.items() if not new[r, p]]
    for at, key in enumerate(zip(row.tolist(), place.tolist(), strict=True) if within else ()):
        volume[at] = within.get(key, (NONE, NONE))[1]
    more = np.array(extra, np.int64).reshape(-1, 4).T
    row, place, broker, volume = (
        np.concatenate(pair) for pair in zip((row, place, broker, volume), more, strict=True)
    )
    return _Copies(row, place, broker, size[row], volume)


def _within(
    table: pa.Table, brokers: BrokerArrays, new: np.ndarray
) -> dict[tuple[int, int], tuple[int, int]]:
    """Replicas whose move names another log dir than their present one: row and position → dense
    broker and volume.
    """
    target_dirs = table.column("target_log_dirs").combine_chunks()
    rows = np.flatnonzero(target_dirs.value_lengths().to_numpy(zero_copy_only=False) > 0)
    if not len(rows):
        return {}
    index = brokers.index()
    volumes = {
        (b, path): volume
        for b, of_broker in enumerate(brokers.volume_paths)
        for volume, paths in enumerate(of_broker)
        for path in paths
    }
    volume_of_copy: dict[tuple[int, int], tuple[int, int]] = {}
    columns = ("current", "target", "current_log_dirs", "target_log_dirs")
    lists = (table.column(column).take(pa.array(rows)).to_pylist() for column in columns)
    for row, current, target, lies, dirs in zip(rows.tolist(), *lists, strict=True):
        today = dict(zip(current, lies, strict=False))
        for place, (broker, path) in enumerate(zip(target, dirs, strict=True)):
            target_volume = volumes.get((index.get(broker, NONE), path))
            if target_volume is not None and path != today.get(broker):
                volume_of_copy[row, place] = index[broker], target_volume
    return volume_of_copy


def _misfit(
    table: pa.Table, brokers: BrokerArrays, copies: _Copies, arriving: Ints, lost: Ints
) -> Misfit:
    """:param lost: (n,) copies of one broker that do not fit."""
    largest = int(lost[np.argmax(copies.size[lost])])
    row, b = int(copies.row[largest]), int(copies.broker[largest])
    partition = TopicPartition(
        table.column("topic")[row].as_py(), table.column("partition")[row].as_py()
    )
    headrooms = tuple(headroom for headroom in brokers.headrooms[b].tolist() if headroom >= 0)
    return Misfit(
        int(brokers.ids[b]), int(arriving[b]), headrooms, partition, int(copies.size[largest])
    )


def _name_log_dirs(
    table: pa.Table, brokers: BrokerArrays, copies: _Copies, tight: Ints, volume: Ints
) -> MoveTable:
    """The moves with log dirs for these copies, on brokers that have several volumes."""
    several = (brokers.headrooms >= 0).sum(axis=1) > 1
    chosen = several[copies.broker[tight]]
    tight, volume = tight[chosen], volume[chosen]
    if not len(tight):
        return MoveTable(table)
    target_dirs: list[list[str]] = table.column("target_log_dirs").to_pylist()
    targets = table.column("target").combine_chunks().value_lengths().to_pylist()
    rows = copies.row[tight], copies.place[tight], copies.broker[tight], volume
    for row, place, broker, number in zip(*(part.tolist() for part in rows), strict=True):
        if not target_dirs[row]:
            target_dirs[row] = [ANY_LOG_DIR] * targets[row]
        target_dirs[row][place] = brokers.volume_paths[broker][number][0]
    at = MOVES_SCHEMA.names.index("target_log_dirs")
    column = pa.array(target_dirs, MOVES_SCHEMA.field(at).type)
    return MoveTable(table.set_column(at, MOVES_SCHEMA.field(at), column))
