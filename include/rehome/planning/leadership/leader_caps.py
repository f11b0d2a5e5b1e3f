"""Keep brokers within their caps on leaders and bytes out, by the order of replicas alone."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.domain.resources import LED
from rehome.planning.leadership.min_leaders import RequestedMinLeaders
from rehome.planning.leadership.preferred_leaders import promote
from rehome.planning.model.in_sync import may_lead
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import partition_weight

LONGEST_CHAIN = 6
"""The most brokers in one chain of leader changes."""


def keep_led_caps(
    layout: Layout,
    movable: Mask,
    *,
    lower: bool,
    leading: Mask | None = None,
    minimums: RequestedMinLeaders | None = None,
) -> None:
    """Change leaders, in place, until no broker is above its cap (or above its load before, if that
    is more).

    If the new leader's broker is at its cap itself, it hands another partition on: a chain of
    leader changes (an augmenting path, found breadth first). For caps on the number of leaders this
    finds every solution within the longest chain.

    :param movable: (P,) partitions whose order may change, in addition to those that the plan
        changes.
    :param leading: (B,) brokers that may lead what is handed over; None = all.
    :param lower: whether brokers that were above their caps are to come down to them.
    :param minimums: of leaders per broker, which are kept. A broker that can only come down to its
        cap by missing one comes down to its load before, whatever it misses.
    """
    limits = layout.arrays.limits
    if limits is None or not limits.leads:
        return
    weights = np.stack([partition_weight(layout.arrays, resource) for resource in LED])
    before = _load(layout.origin[:, 0], weights, limits.led.shape[1])
    at_most = np.maximum(limits.led, before)
    free = movable.copy()
    free[layout.changed_partitions()] = True

    def relieve(most: Floats, minimums: RequestedMinLeaders | None) -> None:
        if (_load(layout.rows[:, 0], weights, most.shape[1]) > most).any():
            _LedLoads(layout, weights, most, free, leading, minimums).relieve_all()

    relieve(limits.led if lower else at_most, minimums)
    if minimums is not None:
        relieve(at_most, None)


def _load(leaders: Floats | np.ndarray, weights: Floats, count: int) -> Floats:
    led = leaders != NONE
    return np.stack([np.bincount(leaders[led], w[led], count) for w in weights])


class _LedLoads:
    """Leader load of brokers, and who else could lead each partition."""

    def __init__(
        self,
        layout: Layout,
        weights: Floats,
        most: Floats,
        free: Mask,
        leading: Mask | None,
        minimums: RequestedMinLeaders | None,
    ) -> None:
        self._layout, self._weights, self._most = layout, weights, most
        rows = layout.rows
        self._load = _load(rows[:, 0], weights, most.shape[1])
        every = np.arange(len(rows))
        able = may_lead(layout.arrays, every, rows) & (rows != NONE)
        able &= layout.arrays.brokers.live[rows]
        if leading is not None:
            able &= leading[rows]
        self._able = able
        some = np.flatnonzero(free & (rows[:, 0] != NONE))
        some = some[np.argsort(rows[some, 0], kind="stable")]
        ends = np.searchsorted(rows[some, 0], np.arange(1, most.shape[1]))
        self._led: list[list[int]] = [part.tolist() for part in np.split(some, ends)]
        # how many leaders of a topic each broker has beyond its minimum
        self._minimum_of: dict[int, int] = {}
        self._spare: Ints = np.zeros((0, 0), np.int64)
        if minimums is not None:
            self._spare = minimums.count_led(rows) - minimums.least[:, None] * minimums.brokers
            for t, of in enumerate(minimums.partitions):
                self._minimum_of |= dict.fromkeys(of.tolist(), t)

    def relieve_all(self) -> None:
        """Make chains for every broker that leads too much, as long as there are any."""
        for broker in self.over():
            while self.is_over(broker) and self.relieve(broker):
                pass

    def over(self) -> list[int]:
        """Brokers that lead more than they may."""
        brokers: list[int] = np.flatnonzero((self._load > self._most).any(axis=0)).tolist()
        return brokers

    def is_over(self, broker: int) -> bool:
        """Whether a broker leads more than it may."""
        return bool((self._load[:, broker] > self._most[:, broker]).any())

    def relieve(self, broker: int) -> bool:
        """Make one chain of leader changes that starts at the broker; whether there was one."""
        came: dict[int, tuple[int, int]] = {broker: (NONE, NONE)}
        front = [broker]
        for _ in range(LONGEST_CHAIN):
            following: list[int] = []
            for source in front:
                for p in self._led[source]:
                    if not self._may_give(source, p):
                        continue
                    for position in np.flatnonzero(self._able[p]).tolist():
                        target = int(self._layout.rows[p, position])
                        if target in came or self._would_exceed_cap(source, broker, p, came):
                            continue
                        came[target] = (source, p)
                        if self._takes(target, p):
                            self._hand_over(target, came)
                            return True
                        following.append(target)
            front = following
        return False

    def _would_exceed_cap(
        self, source: int, first: int, p: int, came: dict[int, tuple[int, int]]
    ) -> bool:
        """Whether a broker in the middle of a chain would end above its cap by giving this one."""
        if source == first:
            return not (self._weights[:, p] > 0)[
                self._load[:, source] > self._most[:, source]
            ].any()
        gets = self._weights[:, came[source][1]] - self._weights[:, p]
        after = self._load[:, source] + gets
        return bool(((after > self._most[:, source]) & (gets > 0)).any())

    def _may_give(self, broker: int, p: int) -> bool:
        """Whether the broker has its minimum of the topic's leaders without this one."""
        t = self._minimum_of.get(p)
        return t is None or bool(self._spare[t, broker] > 0)

    def _takes(self, broker: int, p: int) -> bool:
        more = self._weights[:, p]
        after = self._load[:, broker] + more
        return bool(((after <= self._most[:, broker]) | (more == 0)).all())

    def _hand_over(self, last: int, came: dict[int, tuple[int, int]]) -> None:
        target = last
        while came[target][0] != NONE:
            source, p = came[target]
            row = self._layout.rows[p]
            position = int(np.flatnonzero(row == target)[0])
            promote(self._layout.rows, np.array([p]), np.array([position]))
            self._able[p, : position + 1] = np.roll(self._able[p, : position + 1], 1)
            self._load[:, source] -= self._weights[:, p]
            self._load[:, target] += self._weights[:, p]
            self._led[source].remove(p)
            self._led[target].append(p)
            t = self._minimum_of.get(p)
            if t is not None:
                self._spare[t, source] -= 1
                self._spare[t, target] += 1
            target = source
