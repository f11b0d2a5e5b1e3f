"""Caps and broker sets, read from the request independently of the planner.

The planner uses masks over its arrays (:mod:`rehome.planning.limits`); this code goes topic by
topic and broker by broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import Floats, Ints, Mask
from rehome.domain.kafka import BrokerId
from rehome.domain.request.limits import BrokerSet
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource

CAPPED = (Resource.REPLICAS, Resource.LEADERS, Resource.BYTES_IN, Resource.BYTES_OUT)
"""Resources whose caps apply to the end of a plan; bytes on disk are checked by headroom."""

_NO_SET = -1


def set_numbers(
    request: ReassignmentRequest, topics: Iterable[str], internal: frozenset[str]
) -> Ints:
    """Per topic, the number of the first broker set that names it; -1 = none does.

    :param internal: names of internal topics, which patterns do not match.
    """
    sets = tuple(enumerate(request.broker_sets or ()))
    numbers = [
        next((n for n, item in sets if _names(item, topic, topic in internal)), _NO_SET)
        for topic in topics
    ]
    return np.array(numbers, np.int64)


def _names(item: BrokerSet, topic: str, is_internal: bool) -> bool:
    if topic in item.topics:
        return True
    return not is_internal and any(fnmatchcase(topic, name) for name in item.topics)


def internal_topics(snapshot: Snapshot) -> frozenset[str]:
    """Names of the cluster's internal topics."""
    rows = snapshot.topics.select(["topic", "internal"]).to_pylist()
    return frozenset(row["topic"] for row in rows if row["internal"])


@dataclass(frozen=True)
class AllowedBrokers:
    """Which brokers may hold which partitions.

    :param number: (P,) index into ``may`` of each partition.
    :param may: (S + 1, B) brokers of each set, and of topics of no set; then, if a rebalance goes
        to destinations, those of them that each of these may use.
    """

    number: Ints
    may: Mask

    @classmethod
    def of(
        cls, request: ReassignmentRequest, brokers: Ints, set_of_partition: Ints
    ) -> AllowedBrokers:
        """By the sets of a request.

        :param set_of_partition: (P,) see :func:`set_numbers`.
        """
        sets = request.broker_sets or ()
        may = [np.isin(brokers, np.array(item.brokers, np.int64)) for item in sets]
        shut = [mask for mask, item in zip(may, sets, strict=True) if item.exclusive]
        free = ~np.any([np.zeros(len(brokers), bool), *shut], axis=0)
        number = np.where(set_of_partition == _NO_SET, len(sets), set_of_partition)
        return cls(number, np.array([*may, free], bool).reshape(len(sets) + 1, len(brokers)))

    def brought_to(self, destinations: Mask, scope: Mask) -> AllowedBrokers:
        """The same where some partitions may lie on destinations alone.

        :param destinations: (B,); ``scope``: (P,) these partitions.
        """
        number, may = self.number.copy(), list(self.may)
        for group in sorted(set(self.number[scope].tolist())):
            number[scope & (self.number == group)] = len(may)
            may.append(self.may[group] & destinations)
        return AllowedBrokers(number, np.array(may, bool).reshape(len(may), len(destinations)))

    @property
    def groups(self) -> list[int]:
        """Numbers of the sets that have partitions."""
        numbers: list[int] = np.unique(self.number).tolist()
        return numbers


def cap_of(request: ReassignmentRequest, broker: BrokerId, resource: Resource) -> float | None:
    """The cap of a broker on a resource; None = none."""
    caps = request.caps
    if not caps:
        return None
    own = caps.brokers.get(broker)
    if own is not None and resource.value in own.model_fields_set:
        cap: float | None = getattr(own, resource.value)
    else:
        cap = getattr(caps.default, resource.value)
    return cap


def kept_free(request: ReassignmentRequest, min_free: float, broker: BrokerId) -> float:
    """The fraction of a broker's log dirs that must stay free at every moment."""
    caps = request.caps
    if not caps:
        return min_free
    own, full = caps.brokers.get(broker), caps.default.disk_fraction
    if own is not None and "disk_fraction" in own.model_fields_set:
        full = own.disk_fraction
    return min_free if full is None else max(min_free, 1 - full)


def fair_loads(size: Floats, may: Mask, total: Floats) -> Floats:
    """(B,) the lexicographically fairest loads: the largest load by size is minimal, then the next
    one, and so on.

    Progressive filling: the groups with the largest load by size of all their brokers come first,
    and fill these brokers to one level.

    :param size: (B,) relative size of the brokers.
    :param may: (G, B) brokers of each group; ``total``: (G,) what it has to put on them.
    """
    load = np.zeros(len(size))
    groups, free = total > 0, size > 0
    while True:
        reach = may & free
        groups &= reach.any(axis=1)
        if not groups.any():
            return load
        level, hardest = _hardest(size, reach, total, groups)
        filled = reach[hardest].any(axis=0)
        load[filled] = level * size[filled]
        groups &= ~hardest
        free &= ~filled


def _hardest(size: Floats, reach: Mask, total: Floats, groups: Mask) -> tuple[float, Mask]:
    """The level of the groups with the largest load by size, and (G,) which these are.

    Dinkelbach's method: at a level, a linear program finds the groups that do not fit below it (a
    closure problem, so its vertices are integral); the load of these groups gives the next level.
    """
    from scipy.optimize import linprog

    which = np.flatnonzero(groups)
    hosts, column = np.unique(reach[which], axis=1, return_inverse=True)
    width = np.bincount(column.ravel(), size, hosts.shape[1])
    shared = hosts.any(axis=0)
    hosts, width = hosts[:, shared], width[shared]
    chosen = np.ones(len(which), bool)
    level = float(total[which].sum() / width.sum())
    pairs = np.argwhere(hosts)
    # A chosen group implies all of its brokers: x_g - y_b <= 0.
    rows = np.zeros((len(pairs), len(which) + len(width)))
    rows[np.arange(len(pairs)), pairs[:, 0]] = 1
    rows[np.arange(len(pairs)), len(which) + pairs[:, 1]] = -1
    scale = float(total[which].sum())
    for _ in range(len(which) + 1):
        cost = np.concatenate([-total[which], level * width]) / scale
        solution = linprog(cost, A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(0, 1), method="highs")
        taken = solution.x[: len(which)] > 0.5
        if -solution.fun <= 1e-12 or not taken.any() or taken.all():
            break
        chosen = taken
        level = float(total[which][taken].sum() / width[hosts[taken].any(axis=0)].sum())
    hardest = np.zeros(len(groups), bool)
    hardest[which[chosen]] = True
    return level, hardest
