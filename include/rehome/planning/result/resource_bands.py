"""The bands of a rebalance, for all resources that have one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import Floats, Rows
from rehome.domain.resources import LED, LOOSE, PLACED, Resource
from rehome.planning.leadership.leader_balance import LedShares
from rehome.planning.model.arrays import broker_sums
from rehome.planning.model.layout import Layout
from rehome.planning.model.load_bands import LoadBands
from rehome.planning.model.resource_loads import partition_weight


@dataclass(frozen=True)
class ResourceBands:
    """Per resource with a tolerance: the tolerance and each broker's share, least and most.

    :param tolerance: resource → allowed deviation from the share; only finite ones.
    :param share, low, high: resource → (B,); for the same resources, except those with no load at
        all.
    :param requested_resources: optional resources with a tolerance in the request, known or not.
    """

    tolerance: Mapping[Resource, float]
    share: Mapping[Resource, Floats]
    low: Mapping[Resource, Floats]
    high: Mapping[Resource, Floats]
    requested_resources: frozenset[Resource] = frozenset()

    @classmethod
    def of(
        cls,
        targets: LoadBands,
        led: LedShares | None,
        tolerances: Mapping[Resource, float],
        requested_resources: frozenset[Resource] = frozenset(),
    ) -> ResourceBands:
        """The bands of a rebalance; ``led`` is None if leaders had no tolerance."""
        finite = {name: value for name, value in tolerances.items() if value != LOOSE}
        share, low, high = {}, {}, {}
        for k, resource in enumerate(PLACED):
            if resource in finite and np.isfinite(targets.high[k]).all():
                share[resource], low[resource] = targets.share[k], targets.low[k]
                high[resource] = targets.high[k]
        for k, resource in enumerate(LED):
            if resource in finite and led is not None:
                share[resource] = led.share[k]
                slack = led.tolerance[k] * led.share[k]
                low[resource] = np.floor(led.share[k] - slack) * (not led.one_sided)
                high[resource] = np.ceil(led.share[k] + slack)
        return cls(finite, share, low, high, requested_resources)


def loads(layout: Layout, rows: Rows, resource: Resource) -> Floats:
    """(B,) load of brokers in a resource under these rows; whole numbers."""
    weight = partition_weight(layout.arrays, resource)
    if resource in LED:
        rows = rows[:, :1]
    return broker_sums(rows, weight, len(layout.arrays.brokers.ids))
