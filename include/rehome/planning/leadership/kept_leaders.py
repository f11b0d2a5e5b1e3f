"""What single changes of leaders keep: caps of brokers, and leaders that min_leaders asks for."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask, Rows
from rehome.domain.resources import LED
from rehome.planning.leadership.min_leaders import RequestedMinLeaders
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import partition_weight

_ENOUGH = 2**30
"""Leaders to spare, where no minimum is asked for."""


class KeptLeaders:
    """Counts leaders of a layout against caps and minimums while they change.

    :param minimums: None = none are asked for.
    """

    def __init__(self, layout: Layout, minimums: RequestedMinLeaders | None) -> None:
        limits, leaders = layout.arrays.limits, layout.rows[:, 0]
        count = len(layout.arrays.brokers.ids)
        self._weights = np.stack([partition_weight(layout.arrays, resource) for resource in LED])
        led = leaders != NONE
        load = [np.bincount(leaders[led], w[led], count) for w in self._weights]
        self._load = np.stack(load).astype(np.float64)
        self._most = np.full(self._load.shape, np.inf) if limits is None else limits.led
        topics = 0 if minimums is None else len(minimums.topics)
        self._spare = np.full((topics + 1, count), _ENOUGH)
        self._topic = np.full(len(leaders), topics)
        if minimums is not None:
            least = minimums.least[:, None] * minimums.brokers
            self._spare[:-1] = minimums.count_led(layout.rows) - least
            for t, of in enumerate(minimums.partitions):
                self._topic[of] = t

    def allow(self, partitions: Ints, rows: Rows) -> Mask:
        """(n, R) which replicas of these partitions may lead instead of the first."""
        more = self._weights[:, partitions][:, :, None]
        fits = (self._load[:, rows] + more <= self._most[:, rows]) | (more == 0)
        spared = self._spare[self._topic[partitions], rows[:, 0]] > 0
        may: Mask = fits.all(axis=0) & spared[:, None]
        return may

    def change(self, partitions: Ints, old: Rows, new: Rows) -> None:
        """Count other leaders of one partition, as arrays of one."""
        self._load[:, old] -= self._weights[:, partitions]
        self._load[:, new] += self._weights[:, partitions]
        self._spare[self._topic[partitions], old] -= 1
        self._spare[self._topic[partitions], new] += 1
