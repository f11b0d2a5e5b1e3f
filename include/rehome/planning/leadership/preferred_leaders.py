"""Preferred leaders: the first replica of each row. Changing the order moves no data."""

from __future__ import annotations

from operator import add

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask, Rows
from rehome.planning.model.arrays import ClusterArrays, is_new, replica_counts
from rehome.planning.model.in_sync import may_lead
from rehome.planning.model.layout import Layout

NO_REPLICA_RANK = 2**50
"""Rank of a position without a replica."""


def settle_leaders(layout: Layout) -> None:
    """Put a preferred leader first in every changed row; the other replicas keep their positions.

    The old leader stays if it keeps its replica. Otherwise the broker that leads the fewest
    partitions leads; ties go to a replica that has its data already. A replica out of sync leads
    only if there is no other. Partitions with the fewest replicas choose first.
    """
    rows, origin = layout.rows, layout.origin
    changed = layout.changed_partitions()
    _put_back(rows, origin, changed)
    position = _position_of(origin[changed, 0], rows[changed])
    kept, lost = changed[position != NONE], changed[position == NONE]
    promote(rows, kept, position[position != NONE])
    leads = rows[:, 0].copy()
    leads[lost] = NONE
    count = _leaders(layout.arrays, leads)
    lost = lost[np.argsort(replica_counts(rows[lost]), kind="stable")]
    able = may_lead(layout.arrays, lost, rows[lost])
    promote(rows, lost, _with_fewest_leaders(rows[lost], origin[lost], count, able))


def _with_fewest_leaders(rows: Rows, origin: Rows, count: Ints, able: Mask) -> Ints:
    """(n,) the leading position of each row: of the broker that leads the fewest so far.

    :param count: (B,) partitions that each broker leads before; ties go to the replica that has the
        data already.
    :param able: (n, R) slots that may lead, before any other does.
    """
    width = rows.shape[1]
    rank = np.where(rows == NONE, NO_REPLICA_RANK * 2 * width, 0) + np.arange(width)
    rank += np.where(able, 0, NO_REPLICA_RANK * width)
    rank += width * is_new(rows, origin)
    positions = []
    objective = (2 * width * count).tolist()
    for row, ranks in zip(rows.tolist(), rank.tolist(), strict=True):
        position = min(map(add, map(objective.__getitem__, row), ranks)) % width
        objective[row[position]] += 2 * width
        positions.append(position)
    return np.array(positions, np.int64)


def _position_of(brokers: Rows, rows: Rows) -> Ints:
    """(n,) the first position of a broker in each row; NONE if it has none."""
    position = np.full(len(rows), NONE)
    for number in reversed(range(rows.shape[1])):
        position[rows[:, number] == brokers] = number
    return position


def balance_leaders(layout: Layout, movable: Mask) -> None:
    """Even out the number of preferred leaders per broker, among existing replicas.

    A broker hands a partition to an in-sync replica whose broker leads at least two fewer, until no
    such leader change is left.
    """
    rows = layout.rows
    count = _leaders(layout.arrays, rows[:, 0])
    candidates = np.flatnonzero(movable & (rows[:, 0] != NONE))
    while True:
        fewest = _fewest_leaders(layout.arrays, candidates, rows, count)
        ahead = count[rows[candidates, 0]] - count[fewest] >= 2
        if not ahead.any():
            return
        for partition in candidates[ahead]:
            alone = np.array([partition])
            leader = int(_fewest_leaders(layout.arrays, alone, rows, count)[0])
            old = int(rows[partition, 0])
            if count[old] - count[leader] >= 2:
                count[old] -= 1
                count[leader] += 1
                _promote(rows[partition], leader)


def promote(rows: Rows | Mask, partitions: Ints, positions: Ints) -> None:
    """Move the replica at each position to the front of its row; the others keep their order."""
    for position in np.unique(positions[positions > 0]).tolist():
        some = partitions[positions == position]
        leaders = rows[some, position].copy()
        rows[some, 1 : position + 1] = rows[some, :position]
        rows[some, 0] = leaders


def _put_back(rows: Rows, origin: Rows, changed: Ints) -> None:
    """Give each replica that stays its old position: the search may have moved it away and back."""
    moved = np.zeros(len(changed), bool)
    for number, column in enumerate(rows[changed].T):
        for other, before in enumerate(origin[changed].T):
            if number != other:
                moved |= (column == before) & (column != NONE)
    some = changed[moved]
    row, old = rows[some], origin[some]
    stays = (row[:, :, None] == old[:, None, :]) & (row != NONE)[:, :, None]
    back = np.where(stays.any(axis=1), old, NONE)
    new = (row != NONE) & ~stays.any(axis=2)
    first = np.argsort(~new, axis=1, kind="stable")
    hole = np.cumsum(back == NONE, axis=1) - 1
    filled = (back == NONE) & (hole < new.sum(axis=1, keepdims=True))
    packed = np.take_along_axis(np.take_along_axis(row, first, 1), np.maximum(hole, 0), 1)
    rows[some] = np.where(filled, packed, back)


def _leaders(arrays: ClusterArrays, leads: Rows) -> Ints:
    counted: Ints = np.bincount(leads[leads != NONE], minlength=len(arrays.brokers.ids)).astype(
        np.int64
    )
    return counted


def _fewest_leaders(arrays: ClusterArrays, partitions: Ints, rows: Rows, count: Ints) -> Rows:
    """(n,) of each partition, the broker that leads the fewest, of those that may lead; ties go to
    the first, and so does a partition that none may lead.
    """
    mine = rows[partitions]
    able = may_lead(arrays, partitions, mine) & arrays.brokers.live[mine]
    led = np.where(able, count[mine], np.iinfo(np.int64).max)
    picked: Rows = mine[np.arange(len(mine)), led.argmin(axis=1)]
    return picked


def _promote(row: Rows, leader: int) -> None:
    """Move the leader to the front of its row, in place."""
    position = int(np.flatnonzero(row == leader)[0])
    row[1 : position + 1] = row[:position].copy()
    row[0] = leader
