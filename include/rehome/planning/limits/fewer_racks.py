"""Plans that leave a partition worse spread over the racks than it is, while brokers that would
spread it better take nothing new: refused, with what is in the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from rehome.domain.actions import Action
from rehome.domain.array_types import NONE, Ints, Mask, Rows
from rehome.domain.kafka import BrokerId
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.text import brokers_text
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import NO_RACK, RackTree
from rehome.planning.model.scope import brokers_with, destinations_of, raise_if, shorten


def refuse_fewer_racks(
    layout: Layout,
    tree_before: RackTree,
    tree_after: RackTree,
    arrays: ClusterArrays,
    request: ReassignmentRequest,
) -> None:
    """Refuse a plan that leaves a partition worse spread over the racks than it is, where another
    broker would not, and takes nothing new. A rebalance spreads over the racks of its destinations:
    it is let. So is a copy in place of a replica that is offline: one in the same rack is better
    than none.

    :param arrays: the cluster, with the brokers that take new replicas before any are excluded, and
        before there were destinations.
    :raises InvalidRequestError: names the partitions, brokers that would be better, with their
        racks, and what to do about them.
    """
    if request.brought or request.ignore_racks:
        return
    made = _Made(layout, tree_before, tree_after, arrays, request)
    refusals = made.refused_by_destinations() if request.destinations else []
    raise_if(shorten(refusals or made.refused_by_closed_brokers()))


@dataclass(frozen=True)
class _Made:
    """What :func:`refuse_fewer_racks` is given."""

    layout: Layout
    before: RackTree
    after: RackTree
    arrays: ClusterArrays
    request: ReassignmentRequest

    def refused_by_destinations(self) -> list[str]:
        """Partitions that a broker besides the destinations would spread better."""
        layout, brokers = self.layout, self.arrays.brokers
        moved = np.flatnonzero((layout.rows != layout.origin).any(axis=1))
        before = self.before.violations_of(moved, layout.origin[moved])
        after = self.after.violations_of(moved, layout.rows[moved])
        others = brokers.takes & ~destinations_of(brokers, self.request)
        others &= ~brokers_with(brokers, self.request.exclude_brokers)
        refusals = []
        for p, badly in zip(moved[after > before].tolist(), after[after > before], strict=True):
            tree = self.after.of(p)
            if better := _better(layout, p, int(badly), others & tree.hosts, tree.violations):
                refusals.append(_fewer_racks(layout, p, better))
        return refusals

    def refused_by_closed_brokers(self) -> list[str]:
        """Only of partitions that are evenly spread: how much worse another one gets is a matter of
        what is counted. Where disks or caps are in the way, the gate says so; also of an
        evacuation, which closes brokers itself.
        """
        if self.request.action is Action.EVACUATE_LOG_DIRS:
            return []
        layout, brokers = self.layout, self.arrays.brokers
        closed = ~brokers.takes | brokers_with(brokers, self.request.exclude_brokers)
        moved = np.flatnonzero(_replaced_partitions(layout, self.before))
        every, takes = len(layout.rows), layout.arrays.brokers.takes
        moved = moved[_uneven(self.before, moved, layout.origin[moved], every) == 0]
        badly = _uneven(self.after, moved, layout.rows[moved], every)
        refusals = []
        for p, now in zip(moved[badly > 0].tolist(), badly[badly > 0].tolist(), strict=True):
            tree = self.after.of(p)
            count = partial(_in_racks, tree)
            if _better(layout, p, now, takes & tree.hosts, count):
                continue
            if better := _better(layout, p, now, closed & tree.hosts, count):
                refusals.append(_closed_text(layout, p, better, brokers.takes))
        return refusals


def _replaced_partitions(layout: Layout, tree: RackTree) -> Mask:
    """(P,) partitions that get replicas, and no fewer than they have, of which all are online, and
    where they may be.
    """
    rows, origin = layout.rows, layout.origin
    changed: Mask = (rows != origin).any(axis=1)
    changed &= (rows != NONE).sum(axis=1) >= (origin != NONE).sum(axis=1)
    offline = layout.arrays.offline
    if offline is not None:
        changed &= ~offline.any(axis=1)
    for one, its in tree.parts(changed):
        changed &= ~its | ((origin == NONE) | one.hosts[origin]).all(axis=1)
    return changed


def _uneven(tree: RackTree, partitions: Ints, rows: Rows, count: int) -> Ints:
    """(n,) how far each is from an even spread over the racks, whichever brokers hold it there.

    :param count: of all partitions that there are.
    """
    distances, selection = np.zeros(len(partitions), np.int64), np.zeros(count, bool)
    selection[partitions] = True
    for one, its in tree.parts(selection):
        at = np.flatnonzero(its[partitions])
        distances[at] = _in_racks(one, rows[at])
    return distances


def _in_racks(tree: RackTree, rows: Rows) -> Ints:
    """(n,) the tree's violations without those of its last level, the brokers."""
    violations: Ints = tree.violations_by_level(rows)[:-1].sum(axis=0)
    return violations


def _better(
    layout: Layout, partition: int, badly: int, others: Mask, count: Callable[[Rows], Ints]
) -> list[int]:
    """Brokers that, instead of a new replica, would spread a partition more evenly."""
    row, origin = layout.rows[partition], layout.origin[partition]
    free = np.setdiff1d(np.flatnonzero(others), row)
    helps = np.zeros(len(free), bool)
    for place in np.flatnonzero((row != NONE) & ~np.isin(row, origin)).tolist():
        tried = np.repeat(row[None], len(free), axis=0)
        tried[:, place] = free
        helps |= count(tried) < badly
    better: list[int] = free[helps].tolist()
    return better


def _fewer_racks(layout: Layout, partition: int, better: list[int]) -> str:
    row = layout.rows[partition]
    new = [b for b in row[row != NONE].tolist() if b not in layout.origin[partition]]
    return (
        f"{_worse(layout, partition)}: destinations leaves {_with_racks(layout, new)} for it, and "
        f"{_with_racks(layout, better)} would be better. Name a better one in destinations, or "
        "plan without racks (ignore_racks)."
    )


def _closed_text(layout: Layout, partition: int, better: list[int], takes: Mask) -> str:
    reasons = (
        ([b for b in better if not takes[b]], "with all log dirs offline or cordoned"),
        ([b for b in better if takes[b]], "excluded by the request"),
    )
    reasons_text = "; ".join(
        f"{_with_racks(layout, brokers)}, {why}" for brokers, why in reasons if brokers
    )
    return (
        f"{_worse(layout, partition)}: of brokers that would be better none takes new replicas: "
        f"{reasons_text}. Change that, or plan without racks (ignore_racks)."
    )


def _worse(layout: Layout, partition: int) -> str:
    name = layout.arrays.partition(partition)
    return f"{name} would be spread worse over the racks than it is"


def _with_racks(layout: Layout, brokers: list[int]) -> str:
    paths, ids = layout.arrays.brokers.rack_paths, layout.arrays.brokers.ids
    racks = sorted({"/" + "/".join(paths[b]) if paths[b] else NO_RACK for b in brokers})
    broker_ids: list[BrokerId] = sorted(ids[brokers].tolist())
    return f"{brokers_text(broker_ids)} ({', '.join(racks)})"
