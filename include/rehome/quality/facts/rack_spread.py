"""Spread over racks, computed without the planner's rack tree.

A replica is badly placed if a sibling rack with a free broker holds at least two replicas fewer of
the same partition: moving it there would make the spread more even. No more of them count than
there are free brokers for. A set without such replicas is as even as the racks allow, level by
level. The planner states the same rule by water-filling (:mod:`rehome.planning.model.rack_tree`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rehome.domain.array_types import Ints, Mask

_ROWS_PER_BATCH = 100_000
_NO_SIBLING = np.iinfo(np.int32).max


def badly_placed(
    paths: Sequence[Sequence[str]], hosts: Mask, rows: npt.NDArray[np.int32]
) -> list[Ints]:
    """Per level of the racks, from the root down: (n,) badly placed replicas of each row.

    :param paths: rack path per broker; all empty = no racks, and no level.
    :param hosts: (B,) brokers that may hold replicas; each holds one of a partition.
    :param rows: (n, R) indexes of brokers, padded with -1.
    """
    depth = max((len(path) for path in paths), default=0)
    parent = np.zeros(len(paths), np.int64)
    levels = []
    for level in range(1, depth + 1):
        # A path that ends above this level is a rack of its own there.
        names = [tuple([*path, *[""] * depth][:level]) for path in paths]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        node = np.array([numbers[name] for name in names], np.int64)
        parts = range(0, len(rows), _ROWS_PER_BATCH)
        counts = [
            _in_level(parent, node, hosts, rows[part : part + _ROWS_PER_BATCH]) for part in parts
        ]
        levels.append(np.concatenate([np.zeros(0, np.int64), *counts]))
        parent = node
    return levels


def better_places(
    paths: Sequence[Sequence[str]],
    hosts: Mask,
    row: npt.NDArray[np.int32],
    before: npt.NDArray[np.int32],
) -> Ints:
    """Brokers that, instead of a new one of the row, would spread it more evenly: on the first
    level that differs, fewer replicas are badly placed; on the topmost also if as many are, and
    they are crowded less.

    :param row, before: (R,) indexes of brokers, padded with -1.
    """
    others = np.flatnonzero(hosts & ~np.isin(np.arange(len(hosts)), row))
    is_better = np.zeros(len(others), bool)
    as_it_is = _by_level(paths, hosts, row[None])
    for place in np.flatnonzero((row >= 0) & ~np.isin(row, before)).tolist():
        tried = np.repeat(row[None], len(others), axis=0)
        tried[:, place] = others
        differs = _by_level(paths, hosts, tried) - as_it_is
        first = (differs != 0).argmax(axis=0)
        is_better |= differs[first, np.arange(len(others))] < 0
    better: Ints = others[is_better]
    return better


def crowding(paths: Sequence[Sequence[str]], rows: npt.NDArray[np.int32]) -> Ints:
    """(n,) squares of the replicas of each row in each rack of the first level: less is more even.

    :param rows: (n, R) indexes of brokers, padded with -1.
    """
    names = [tuple(path[:1]) for path in paths]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    rack = np.array([numbers[name] for name in names], np.int64)[rows]
    both = (rows >= 0)[:, :, None] & (rows >= 0)[:, None, :]
    squares: Ints = ((rack[:, :, None] == rack[:, None, :]) & both).sum(axis=(1, 2))
    return squares


def _by_level(
    paths: Sequence[Sequence[str]], hosts: Mask, rows: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """(levels + 1, n) badly placed replicas of each level from the root down; after the first, how
    crowded it is.
    """
    badly = badly_placed(paths, hosts, rows)
    return np.stack([*badly[:1], crowding(paths, rows), *badly[1:]])


def _in_level(parent: Ints, node: Ints, hosts: Mask, rows: npt.NDArray[np.int32]) -> Ints:
    """(n,) badly placed replicas on one level.

    :param parent, node: (B,) number of the node of each broker above and on this level.
    """
    capacity = np.bincount(node[hosts], minlength=int(node.max()) + 1)
    above = np.zeros(len(capacity), np.int64)
    above[node] = parent
    open_nodes = np.bincount(above[capacity > 0], minlength=int(parent.max()) + 1)

    is_replica = rows >= 0
    brokers = np.where(is_replica, rows, 0)
    mine, up = node[brokers], parent[brokers]
    both = is_replica[:, :, None] & is_replica[:, None, :]
    same = (mine[:, :, None] == mine[:, None, :]) & both
    siblings = (up[:, :, None] == up[:, None, :]) & both
    count = same.sum(axis=2)
    first = is_replica & ~np.tril(same, -1).any(axis=2)

    free = is_replica & (count < capacity[mine])
    fewest = np.where(siblings & free[:, None, :], count[:, None, :], _NO_SIBLING).min(axis=2)
    reached = (siblings & (first & (capacity[mine] > 0))[:, None, :]).sum(axis=2)
    fewest = np.where(reached < open_nodes[up], 0, fewest)
    most = np.minimum(capacity[mine], fewest + 1)
    stays = np.minimum(count, capacity[mine])
    badly: Ints = (first * (count - stays)).sum(axis=1)
    surplus = first * np.maximum(stays - most, 0)
    some = np.flatnonzero(surplus.any(axis=1))
    below = np.bincount(above, capacity, minlength=int(parent.max()) + 1).astype(np.int64)
    racks = siblings[some] & first[some][:, None, :]
    room = below[up[some]] - (racks * capacity[mine[some]][:, None, :]).sum(axis=2)
    room += _room_beside(racks, count[some], capacity[mine[some]])
    of_parent = (siblings[some] * surplus[some][:, None, :]).sum(axis=2)
    first_below = is_replica[some] & ~np.tril(siblings[some], -1).any(axis=2)
    badly[some] += (first_below * np.minimum(of_parent, room)).sum(axis=1)
    return badly


def _room_beside(racks: Mask, count: Ints, capacity: Ints) -> Ints:
    """(n, R) free brokers in racks of the row that hold at least two replicas fewer than the
    fullest one beside them.

    :param racks: (n, R, R) the first replica of each rack beside that of each replica.
    :param count, capacity: (n, R) replicas and brokers of the rack of each replica.
    """
    fullest = (racks * count[:, None, :]).max(axis=2)
    fewer = racks & (count[:, None, :] <= fullest[:, :, None] - 2)
    room: Ints = (fewer * np.maximum(capacity - count, 0)[:, None, :]).sum(axis=2)
    return room
