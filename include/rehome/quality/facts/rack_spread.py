"""Spread over racks, computed without the planner's rack tree.

A set of replicas is as even as the racks allow if no rack holds two more of them than a sibling
with a free broker, level by level. Badly placed are the fewest replicas that have to go to a
sibling until that holds. The planner counts by a tree of racks, which is not used here
(:mod:`rehome.planning.model.rack_tree`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rehome.domain.array_types import Ints, Mask

_ROWS_PER_BATCH = 100_000


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
    is_replica = rows >= 0
    brokers = np.where(is_replica, rows, 0)
    mine, up = node[brokers], parent[brokers]
    both = is_replica[:, :, None] & is_replica[:, None, :]
    same = (mine[:, :, None] == mine[:, None, :]) & both
    siblings = (up[:, :, None] == up[:, None, :]) & both
    first = is_replica & ~np.tril(same, -1).any(axis=2)
    count, below = first * same.sum(axis=2), siblings.sum(axis=2)

    room = _room_by_level(capacity, above, rows.shape[1])
    level = (room[up] <= below[:, :, None]).sum(axis=2) - 1
    too_many = np.maximum(count - np.minimum(capacity[mine], level + 1), 0)
    of_least = first * np.minimum(count, np.minimum(capacity[mine], level))
    leave = (siblings * too_many[:, None, :]).sum(axis=2)
    come = room[up, level] - (siblings * of_least[:, None, :]).sum(axis=2)
    first_below = is_replica & ~np.tril(siblings, -1).any(axis=2)
    badly: Ints = (first_below * np.maximum(leave, come)).sum(axis=1)
    return badly


def _room_by_level(capacity: Ints, above: Ints, most: int) -> Ints:
    """(parents, most + 1) replicas below each parent if each of its children holds 0, 1, 2 … up to
    ``most``, or as many as it has brokers.

    :param capacity, above: (nodes,) brokers of each child, and its parent.
    """
    parents = int(above.max()) + 1
    columns = [
        np.bincount(above, np.minimum(capacity, each), minlength=parents)
        for each in range(most + 1)
    ]
    room: Ints = np.stack(columns, axis=1).astype(np.int64)
    return room
