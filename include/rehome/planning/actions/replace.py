"""The action replace: each replica goes to the replacement of its broker, at the same position."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask, Rows
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.text import brokers_text
from rehome.planning.limits.destinations import refuse_apart
from rehome.planning.limits.set_trees import rack_tree
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import (
    brokers_with,
    check_idle,
    check_replication_factor,
    partitions_in_scope,
    rack_paths,
    raise_if,
)
from rehome.planning.placement.movable import with_source
from rehome.planning.placement.replica_sets import Placer
from rehome.planning.result.outcome import Outcome, each_by_itself, largest_first, tree_of

_CODES = {
    None: CauseCode.REPLACED,
    Obstacle.REPLACEMENT_HOLDS_ONE: CauseCode.REPLACEMENT_HOLDS_ONE,
    Obstacle.REPLACEMENT_RACKS: CauseCode.REPLACEMENT_RACKS,
    Obstacle.REPLACEMENT_FULL: CauseCode.REPLACEMENT_FULL,
    Obstacle.REPLACEMENT_LIMITED: CauseCode.REPLACEMENT_LIMITED,
}
"""What keeps a replacement from taking a replica, and the cause that names it."""


def plan_replacement(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Every replica in scope goes from a replaced broker to its replacement and keeps its position,
    so leadership moves along.

    If the replacement cannot take a replica, or the racks would be spread worse, the replica goes
    to another broker as in a drain and is reported. So the replaced brokers always end empty.

    :raises InvalidRequestError: unknown brokers; a replacement that is not live or takes nothing.
    """
    successor = _successors(arrays, request)
    replaced = successor != NONE
    hosts = arrays.brokers.live & ~replaced
    leaving = (arrays.rows != NONE) & replaced[arrays.rows]
    partitions = np.flatnonzero(partitions_in_scope(arrays, request) & leaving.any(axis=1))
    check_idle(arrays, partitions)
    partitions, lost = with_source(arrays, partitions)
    factor = arrays.replication_factor
    check_replication_factor(arrays, partitions, factor, int(hosts.sum()), "live brokers left")
    refuse_apart(arrays, request, hosts, partitions)
    tree, layout = tree_of(arrays, hosts, request), Layout(arrays)
    spread = _Spread(arrays, replaced, hosts, request)
    obstacles: dict[tuple[int, int], Obstacle] = {}
    for p in largest_first(layout, partitions):
        obstacles |= _to_replacements(layout, p, successor, spread)
    _elsewhere(layout, tree, partitions, hosts, request)
    obstacles = {
        (p, old): what
        for (p, old), what in obstacles.items()
        if layout.rows[p, _position(layout, p, old)] != successor[old]  # else it came after all
    }
    ids = arrays.brokers.ids

    def causes(p: int) -> list[MoveCause]:
        move_causes = []
        for old, new in zip(arrays.rows[p].tolist(), layout.rows[p].tolist(), strict=True):
            if old == new:
                continue
            if replaced[old]:
                code = _CODES[obstacles.get((p, old))]
                move_causes.append(MoveCause(code, int(ids[old]), int(ids[successor[old]])))
            else:
                move_causes.append(MoveCause(CauseCode.NOT_LIVE, int(ids[old])))
        return move_causes

    return Outcome(
        layout=layout,
        tree_before=tree_of(arrays, arrays.brokers.live, request),
        tree_after=tree,
        lower_bound_bytes=int(layout.incoming.sum()),
        reason=MoveReason.REPLACE,
        causes=each_by_itself(causes),
        infeasible=(
            *lost,
            *(_note(layout, *key, int(successor[key[1]]), what) for key, what in obstacles.items()),
        ),
    )


def _successors(arrays: ClusterArrays, request: ReassignmentRequest) -> Ints:
    """(B,) replacement of each broker; NONE = the broker stays."""
    pairs, brokers = request.replacements, arrays.brokers
    brokers_with(brokers, (*pairs, *pairs.values()))
    index = brokers.index()
    new = np.array([index[broker] for broker in pairs.values()], np.int64)
    raise_if(
        [
            f"Broker {b} is not live and can replace none."
            for b in brokers.ids[new[~brokers.live[new]]]
        ]
        + [
            f"Broker {b} takes no new replicas: all its log dirs are offline or cordoned."
            for b in brokers.ids[new[brokers.live[new] & ~brokers.takes[new]]]
        ]
    )
    successor = np.full(len(brokers.ids), NONE, np.int64)
    successor[[index[broker] for broker in pairs]] = new
    return successor


class _Spread:
    """Compares the rack spread of two rows, as if the replaced brokers stayed, and as it is without
    them: a rack that they were alone in holds nothing afterwards.
    """

    def __init__(
        self, arrays: ClusterArrays, replaced: Mask, hosts: Mask, request: ReassignmentRequest
    ) -> None:
        paths = rack_paths(arrays.brokers, ignore_racks=request.ignore_racks)
        self._before, self._after = (
            rack_tree(arrays, paths, brokers, arrays.rows.shape[1])
            for brokers in (arrays.brokers.live | replaced, hosts)
        )

    def no_worse(self, partition: int, before: Rows, after: Rows) -> bool:
        """Whether the first level of the rack tree that differs has become more even than before
        the plan, with the other replicas where they are.

        :param before, after: (R,) dense broker indexes.
        """
        rows = np.stack([self._row_of_hosts(partition, before, after), after])
        rows[1, rows[0] == NONE] = NONE
        first, now = self._before.of(partition).violations_by_level(rows).T.tolist()
        return bool(now <= first)

    def even_without(self, partition: int, before: Rows, after: Rows) -> bool:
        """Whether it is even without the replicas that are still to go, on the brokers that are
        left; or at least as even as before, and crowded no more.
        """
        left, was = self._after.of(partition), self._row_of_hosts(partition, before, after)
        placed = np.where(left.hosts[after], after, NONE)
        first = self._before.of(partition).violations_by_level(was[None])[:, 0].tolist()
        now = left.violations_by_level(placed[None])[:, 0].tolist()
        no_worse = now <= first and _crowds(left, placed) <= _crowds(left, was)
        return not any(now) or bool(no_worse)

    def _row_of_hosts(self, partition: int, before: Rows, after: Rows) -> Rows:
        """(R,) the row before, without what stays outside of its broker set, or dead."""
        hosts = self._before.of(partition).hosts
        row: Rows = np.where((before == after) & ~hosts[before], NONE, before)
        return row


def _crowds(tree: RackTree, row: Rows) -> list[int]:
    """Per level, the squares of a row's replicas in each node."""
    counts = (np.bincount(node[row[row != NONE]]) for node in tree.node)
    return [int((of_level**2).sum()) for of_level in counts]


def _to_replacements(
    layout: Layout, p: int, successor: Ints, spread: _Spread
) -> dict[tuple[int, int], Obstacle]:
    """Move the partition's replicas to their replacements: first those that leave it as even as it
    is. Returns those that cannot go there, with the obstacle.
    """
    obstacles: dict[tuple[int, int], Obstacle] = {}
    fits, within, origin = layout.fits(p), layout.within_limits(p), layout.origin[p]
    for rule in (spread.no_worse, spread.even_without):
        for position, old in enumerate(layout.rows[p].tolist()):
            if old == NONE or successor[old] == NONE or old != origin[position]:
                continue
            row, new = layout.rows[p].copy(), int(successor[old])
            row[position] = new
            obstacle = _obstacle(new, layout.rows[p], within, fits)
            if obstacle is None and not rule(p, origin, row):
                obstacle = Obstacle.REPLACEMENT_RACKS
            if obstacle is None:
                layout.move(p, position, new)
                obstacles.pop((p, old), None)
            else:
                obstacles[p, old] = obstacle
    return obstacles


def _obstacle(new: int, row: Rows, within: Mask, fits: Mask) -> Obstacle | None:
    """What keeps a broker from taking a replica, whatever the racks."""
    if new in row:
        return Obstacle.REPLACEMENT_HOLDS_ONE
    if not within[new]:
        return Obstacle.REPLACEMENT_LIMITED
    return None if fits[new] else Obstacle.REPLACEMENT_FULL


def _elsewhere(
    layout: Layout, tree: RackTree, partitions: Ints, hosts: Mask, request: ReassignmentRequest
) -> None:
    """Move what is left on replaced or dead brokers to other brokers; the rest keeps its
    position.
    """
    capacity = capacities(layout.arrays, hosts, request.weights)
    placer = Placer(layout, tree, capacity)
    for p in largest_first(layout, partitions):
        gone = {b for b in layout.rows[p].tolist() if b != NONE and not hosts[b]}
        if gone and not placer.replace(p, gone):
            left = brokers_text(sorted(int(layout.arrays.brokers.ids[b]) for b in gone))
            raise_if(
                [
                    f"{layout.arrays.partition(p)} cannot leave {left}: neither the "
                    "replacement nor another broker takes it and has room in one log dir."
                ]
            )


def _position(layout: Layout, p: int, old: int) -> int:
    return int(np.flatnonzero(layout.origin[p] == old)[0])


def _note(layout: Layout, p: int, old: int, new: int, obstacle: Obstacle) -> Infeasible:
    ids = layout.arrays.brokers.ids
    return Infeasible(
        Subject.of_partition(layout.arrays.partition(p)),
        obstacle,
        1,
        0,
        brokers=(int(ids[layout.rows[p, _position(layout, p, old)]]),),
        instead_of=(int(ids[new]),),
    )
