"""Undo changes that take brokers above their caps."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Ints, Mask, Rows
from rehome.domain.resources import LED, PLACED, Resource
from rehome.planning.limits.apply_limits import above_caps, loads_of
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import partition_weight


def undo_above_caps(layout: Layout) -> None:
    """Undo changes, in place, until no broker is above its cap, or further above it than before.

    Needed if the caps of a broker set are too low for its topics, or if replicas without another
    valid broker return to one that others have filled meanwhile. It ends at the latest when
    everything is undone: then no broker is further above a cap than before.
    """
    limits = layout.arrays.limits
    if limits is None:
        return
    caps = dict(zip((*PLACED, *LED), (*limits.placed, *limits.led), strict=True))
    while over := above_caps(layout.arrays, layout.origin, layout.rows):
        back: list[Ints] = []
        for resource, broker in over:
            had, holds = (
                float(loads_of(layout.arrays, rows, resource)[broker])
                for rows in (layout.origin, layout.rows)
            )
            excess = holds - max(float(caps[resource][broker]), had)
            back.append(_fewest(layout, resource, broker, excess))
        chosen = np.unique(np.concatenate(back))
        layout.rows[chosen] = layout.origin[chosen]
    layout.refresh()


def _fewest(layout: Layout, resource: Resource, broker: int, excess: float) -> Ints:
    """The fewest partitions that the broker newly holds, or leads, and that add up to the excess;
    ties: the smallest.
    """
    new: Mask = _has(layout.rows, resource, broker) & ~_has(layout.origin, resource, broker)
    weight = partition_weight(layout.arrays, resource)
    candidates = np.flatnonzero(new & (weight > 0))
    order: Ints = candidates[np.lexsort((layout.size[candidates], -weight[candidates]))]
    enough = int(np.searchsorted(np.cumsum(weight[order]), excess)) + 1
    return order[:enough]


def _has(rows: Rows, resource: Resource, broker: int) -> Mask:
    has: Mask = ((rows[:, :1] if resource in LED else rows) == broker).any(axis=1)
    return has
