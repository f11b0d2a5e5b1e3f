"""The action repair_racks: spread partitions as evenly as the racks allow."""

from __future__ import annotations

from functools import partial

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.infeasible import Notes, Obstacle, Subject, SubjectKind
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.actions.placement_costs import asked_bound, least_costs, left_out
from rehome.planning.leadership.preferred_leaders import settle_leaders
from rehome.planning.limits.apply_limits import groups, outside_sets
from rehome.planning.limits.limit_checks import set_too_small
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.scope import partitions_in_scope
from rehome.planning.placement.movable import free_to_move, notes_of
from rehome.planning.placement.within_budget import affordable
from rehome.planning.rebalance.budget_cut import budget_of
from rehome.planning.result.lower_bounds import placement_bound
from rehome.planning.result.outcome import (
    MoveCauses,
    Outcome,
    all_alike,
    complete,
    each_by_itself,
    tree_of,
)


def plan_racks(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The action repair_racks: spread partitions in scope as evenly as the racks allow."""
    hosts = arrays.brokers.live
    tree = tree_of(arrays, hosts, request)
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    every, replicas = np.arange(len(arrays.rows)), arrays.replication_factor
    violations = tree.violations_of(every, arrays.rows)
    small = movable & set_too_small(arrays, hosts, replicas)
    infeasible += notes_of(arrays, np.flatnonzero(small), Obstacle.SET_TOO_SMALL)
    partitions = np.flatnonzero(movable & ~small & (violations > 0))
    paid = affordable(
        budget_of(request),
        partitions,
        partial(least_costs, arrays, tree, partitions, replicas),
        lambda parts: np.lexsort((parts, -violations[partitions])),
    )
    layout = Layout(arrays)
    complete(layout, tree, paid, replicas, request.weights)
    uneven = _left_uneven(layout, tree, paid)
    back = _put_back(layout, paid, budget_of(request))
    paid = np.setdiff1d(paid, back)
    settle_leaders(layout)
    unpaid = left_out(Subject(SubjectKind.RACK_REPAIR), len(partitions) - len(paid))
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, paid),
        asked_bound_bytes=asked_bound(arrays, tree, partitions, replicas, paid),
        reason=MoveReason.RACK,
        causes=_causes(arrays, layout),
        infeasible=(*infeasible, *unpaid, *(note for p in paid for note in uneven.get(p, ()))),
    )


def _put_back(layout: Layout, partitions: Ints, budget: Floats) -> Ints:
    """Put partitions back until the others are within the budget, those with most copies first:
    where brokers are full, an even spread takes more copies than was counted on.

    :returns: those that are put back.
    """
    rows, origin = layout.rows[partitions], layout.origin[partitions]
    copies = is_new(rows, origin).sum(axis=1)
    costs = np.stack([copies * layout.size[partitions], copies]).astype(float)
    back: list[int] = []
    for at in np.argsort(-copies, kind="stable").tolist():
        if (costs.sum(axis=1) <= budget).all():
            break
        costs[:, at] = 0
        back.append(int(partitions[at]))
        layout.put_back(back[-1])
    return np.array(back, np.int64)


def _left_uneven(layout: Layout, tree: RackTree, partitions: Ints) -> dict[int, Notes]:
    """Notes on each of these partitions that is not even after all, with what keeps it off the
    brokers that would spread it more evenly. Replicas go to such brokers as long as there are any.
    """
    notes: dict[int, Notes] = {}
    uneven = partitions[tree.violations_of(partitions, layout.rows[partitions]) > 0].tolist()
    for p in uneven:
        _undo_unless_better(layout, tree, p)
    improved = len(uneven)
    while improved:  # what one leaves may have room for another
        improved = sum(_improve(layout, tree, p) for p in uneven)
    for p in uneven:
        _, better = _better_places(layout, tree, p)
        if not len(better):
            continue
        why, takes = Obstacle.CLOSED_KEEP_UNEVEN, layout.arrays.brokers.takes[better]
        if takes.any():
            within = layout.within_limits(p)[better[takes]]
            why = Obstacle.DISKS_KEEP_UNEVEN if within.any() else Obstacle.CAPS_KEEP_UNEVEN
        notes[p] = notes_of(layout.arrays, np.array([p]), why)
    return notes


def _improve(layout: Layout, tree: RackTree, partition: int) -> bool:
    """Spread a partition more evenly by single copies, the best first; whether there was one."""
    improved = False
    place, better = _better_places(layout, tree, partition)
    while len(better) and (fits := layout.fits(partition)[better]).any():
        chosen, improved = int(np.flatnonzero(fits)[0]), True
        layout.move(partition, int(place[chosen]), int(better[chosen]))
        place, better = _better_places(layout, tree, partition)
    return improved


def _undo_unless_better(layout: Layout, tree: RackTree, partition: int) -> None:
    """Put a partition back that is no more even than it was, nor more inside its set."""
    rows = np.stack([layout.origin[partition], layout.rows[partition]])
    back = rows[0][~np.isin(rows[0], rows[1])]
    if not layout.within_limits(partition)[back].all():
        return
    both = np.array([partition] * 2)
    outside, (was, now) = tree.outside_of(both, rows), tree.unevenness_of(both, rows)
    if now >= was and outside[1] >= outside[0]:
        layout.put_back(partition)


def _better_places(layout: Layout, tree: RackTree, partition: int) -> tuple[Ints, Ints]:
    """Changes of one replica that spread the partition more evenly, the best first: (n,) the
    replica's position, and the broker that it would go to.
    """
    row, mine = layout.rows[partition], tree.of(partition)
    one = np.array([partition])
    others = np.flatnonzero(mine.hosts & ~np.isin(np.arange(len(mine.hosts)), row))
    place = np.repeat(np.flatnonzero(row != NONE), len(others))
    broker = np.tile(others, int((row != NONE).sum()))
    tried = np.tile(row, (len(place), 1))
    tried[np.arange(len(place)), place] = broker
    left = tree.unevenness_of(one.repeat(len(tried)), tried)
    order = np.argsort(left, kind="stable")
    order = order[left[order] < tree.unevenness_of(one, row[None])]
    return place[order], broker[order]


def _causes(arrays: ClusterArrays, layout: Layout) -> MoveCauses:
    if arrays.limits is None:
        return all_alike(CauseCode.UNEVEN_RACKS)
    outside, ids = outside_sets(arrays, arrays.rows), arrays.brokers.ids

    def causes(p: int) -> list[MoveCause]:
        gone = ids[arrays.rows[p][outside[p]]].tolist()
        code, name = _bound_by(arrays, p)
        return [MoveCause(code, broker, name=name) for broker in gone] or _UNEVEN

    return each_by_itself(causes)


_UNEVEN = [MoveCause(CauseCode.UNEVEN_RACKS)]


def _bound_by(arrays: ClusterArrays, p: int) -> tuple[CauseCode, str]:
    """What binds the topic of a partition to brokers, and the set's name; "" = a set of others."""
    limits, number = arrays.limits, int(groups(arrays)[p])
    if limits is not None and number >= limits.bound_from:
        return CauseCode.OUTSIDE_DESTINATIONS, ""
    return CauseCode.OUTSIDE_SET, limits.names[number] if limits is not None and number else ""
