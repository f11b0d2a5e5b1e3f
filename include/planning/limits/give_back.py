"""What a search has taken above a cap goes back to where it was."""

from __future__ import annotations

import numpy as np

from include.domain.array_types import Ints, Mask, Rows
from include.domain.resources import LED, PLACED, Resource
from include.planning.limits.limited import above_caps, loads_of
from include.planning.model.layout import Layout
from include.planning.model.resource_loads import partition_weight


def give_back(layout: Layout) -> None:
    """Take changes back, in place, until no broker is above a cap, or further above than it was.

    Where a set is too small for what its caps allow, and where replicas that found no other place
    go back to a broker that others have filled up meanwhile. It ends, at the latest where
    everything is as it was: that takes no broker further above a cap.
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
    """The fewest partitions that a broker has newly got, or leads, and that make up the excess;
    of equals, the smallest.
    """
    new: Mask = _has(layout.rows, resource, broker) & ~_has(layout.origin, resource, broker)
    weight = partition_weight(layout.arrays, resource)
    found = np.flatnonzero(new & (weight > 0))
    order: Ints = found[np.lexsort((layout.size[found], -weight[found]))]
    enough = int(np.searchsorted(np.cumsum(weight[order]), excess)) + 1
    return order[:enough]


def _has(rows: Rows, resource: Resource, broker: int) -> Mask:
    has: Mask = ((rows[:, :1] if resource in LED else rows) == broker).any(axis=1)
    return has
