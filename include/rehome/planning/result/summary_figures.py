"""Figures of the plan's summary: ratio to the lower bound, balance, links, makespan bound."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import ACTION_FACTS, Action
from rehome.domain.plan.failure_domains import weaknesses_of
from rehome.domain.plan.figures import Link, ResourceBalance, Weakened
from rehome.domain.plan.move import Move
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.resources import OPTIONAL, RATES, RESOURCE_NAMES, Resource
from rehome.domain.text import join_names
from rehome.planning.model.layout import Layout, copies, sources
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import is_known
from rehome.planning.result.outcome import Outcome
from rehome.planning.result.resource_bands import ResourceBands, loads

RACKS_SHOWN = 40
"""The most racks for which bytes from rack to rack are listed; with more, a higher level is
used.
"""


def ratio_to_bound(bytes_to_move: int, lower_bound_bytes: int) -> float | None:
    """Bytes copied / lower bound; None if the bound is 0 and bytes move."""
    if bytes_to_move == lower_bound_bytes:
        return 1.0
    return round(bytes_to_move / lower_bound_bytes, 4) if lower_bound_bytes else None


def makespan_bound_s(brokers: Iterable[BrokerLoad], rate_bytes_per_s: int | None) -> float | None:
    """Lower bound of the execution time in seconds: the busiest broker's bytes in, out, or between
    its log dirs, at the throttle's rate.
    """
    if not rate_bytes_per_s:
        return None
    busiest = max(
        (max(load.bytes_in, load.bytes_out, load.log_dir_bytes) for load in brokers), default=0
    )
    return busiest / rate_bytes_per_s


NO_HISTORY = "no history"


def planned_by(bands: ResourceBands | None, measured: Collection[Resource], action: Action) -> str:
    """Which loads the plan was made by, and which ones were not known.

    :param measured: resources whose load is known.
    """
    if bands is None:
        return ACTION_FACTS[action].planned_by
    names = [RESOURCE_NAMES[resource] for resource in Resource if resource in bands.tolerance]
    unknown = [r for r in stated_resources(bands) if r in RATES and r not in measured]
    text = f"{join_names(names)}{' only' if len(names) == 1 else ''}"
    if unknown:
        text += f"; {join_names([RESOURCE_NAMES[r] for r in unknown])} not known: {NO_HISTORY}"
    return text


def resource_balances(outcome: Outcome) -> tuple[ResourceBalance, ...]:
    """Each resource on every broker, before and after, with its band if it has one; optional
    resources only if requested.
    """
    layout, bands = outcome.layout, outcome.bands
    return tuple(_balance(layout, bands, resource) for resource in stated_resources(bands))


def stated_resources(bands: ResourceBands | None) -> tuple[Resource, ...]:
    """The resources in a plan's summary: all but optional ones that are not requested."""
    requested_resources = frozenset() if bands is None else bands.requested_resources
    return tuple(r for r in Resource if r not in OPTIONAL or r in requested_resources)


def _balance(layout: Layout, bands: ResourceBands | None, resource: Resource) -> ResourceBalance:
    before, after = (loads(layout, rows, resource) for rows in (layout.origin, layout.rows))
    banded = bands is not None and resource in bands.low
    return ResourceBalance(
        resource=resource.value,
        known=is_known(layout.arrays, resource),
        tolerance=None if bands is None else bands.tolerance.get(resource),
        before=_whole(before),
        after=_whole(after),
        low=_whole(bands.low[resource]) if bands is not None and banded else (),
        high=_whole(bands.high[resource]) if bands is not None and banded else (),
    )


def _whole(values: Iterable[float]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def what_is_weakened(snapshot: Snapshot, moves: Iterable[Move]) -> tuple[Weakened, ...]:
    """Partitions that end in fewer racks or with fewer replicas; no dead broker has a rack."""
    columns = (
        snapshot.brokers.column(name).to_pylist() for name in ("broker", "live", "rack_path")
    )
    racks = {broker: path for broker, live, path in zip(*columns, strict=True) if live}
    return weaknesses_of(moves, racks)


def bytes_across_racks(layout: Layout, tree: RackTree) -> int:
    """Bytes copied between branches of the top level; 0 if brokers have no racks."""
    if tree.height < 2:
        return 0
    partition, target = copies(layout)
    top = tree.node[1]
    across = top[sources(layout)[partition]] != top[target]
    return int(layout.size[partition[across]].sum())


def links(layout: Layout, tree: RackTree) -> tuple[Link, ...]:
    """Bytes from rack to rack, largest first; empty if brokers have no racks."""
    racks = [level for level in range(1, tree.height) if len(tree.capacity[level]) <= RACKS_SHOWN]
    if not racks:
        return ()
    level = racks[-1]
    node, count = tree.node[level], len(tree.capacity[level])
    partition, target = copies(layout)
    pair = node[sources(layout)[partition]] * count + node[target]
    total = np.bincount(pair, layout.size[partition], count * count)
    order = np.argsort(-total, kind="stable")
    names = [tree.name(level, number) for number in range(count)]
    return tuple(
        Link(names[cell // count], names[cell % count], int(total[cell]))
        for cell in order[total[order] > 0].tolist()
    )
