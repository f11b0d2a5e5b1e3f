"""Caps and broker sets of a request, on the dense indexes of a cluster.

A cap is the most that a broker may hold: no plan takes a broker above it, or further above. A
*group* is all topics that are bound to the same brokers: those of a broker set, and those of none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Mask, Rows
from include.domain.request.limits import BrokerCaps, BrokerSet, set_of_topic
from include.domain.resources import LED, PLACED, Resource
from include.errors import InvalidRequestError
from include.planning.model.arrays import BrokerArrays, ClusterArrays, broker_sums
from include.planning.model.resource_loads import partition_weight

NO_SET = "no broker set"
"""The name of the group of all topics that no set names."""


@dataclass(frozen=True)
class Limits:
    """What brokers may hold.

    :param placed: (K, B) the most of each of :data:`PLACED`; infinite = any. That of bytes is what
        a broker may hold in the end; at every moment its room counts.
    :param led: (2, B) the most of each of :data:`LED`.
    :param group_of: (T,) the group of each topic; empty where there are no sets.
    :param allowed: (G, B) brokers that may hold replicas of each group; the first one is that of
        topics of no set.
    :param names: of the groups.
    """

    placed: Floats
    led: Floats
    group_of: Ints
    allowed: Mask
    names: tuple[str, ...]
    sets: tuple[BrokerSet, ...] = ()

    def group_of_name(self, topics: tuple[str, ...], topic: str) -> int:
        """The group of a topic, one that does not exist yet included."""
        if topic in topics:
            return int(self.group_of[topics.index(topic)])
        found = set_of_topic(self.sets, topic)
        return 0 if found is None else 1 + self.sets.index(found)

    @cached_property
    def has_sets(self) -> bool:
        """Whether any topic is kept off any broker."""
        return not bool(self.allowed.all())

    @cached_property
    def counted(self) -> Ints:
        """Rows of :data:`PLACED` whose caps are kept at every step; bytes are kept by room."""
        rows = [k for k, r in enumerate(PLACED) if r is not Resource.BYTES]
        return np.array([k for k in rows if np.isfinite(self.placed[k]).any()], np.int64)

    @property
    def leads(self) -> bool:
        """Whether any broker has a cap on what it leads."""
        return bool(np.isfinite(self.led).any())


def limited(
    arrays: ClusterArrays, caps: BrokerCaps | None, sets: Iterable[BrokerSet] | None
) -> ClusterArrays:
    """The cluster with its limits; as it was where there are none.

    :raises InvalidRequestError: a set or a cap names a broker that the cluster does not have.
    """
    sets = tuple(sets or ())
    if not caps and not sets:
        return arrays
    _check_names(arrays.brokers, caps, sets)
    placed, led = _caps(arrays, caps or BrokerCaps())
    group_of, allowed = _groups(arrays, sets)
    names = (NO_SET, *(item.name for item in sets))
    return replace(arrays, limits=Limits(placed, led, group_of, allowed, names, sets))


def _check_names(
    brokers: BrokerArrays, caps: BrokerCaps | None, sets: tuple[BrokerSet, ...]
) -> None:
    ids = set(brokers.ids.tolist())
    problems = [
        f"Broker set {item.name!r} names broker {broker}, which the cluster does not have."
        for item in sets
        for broker in item.brokers
        if broker not in ids
    ]
    problems += [
        f"Caps name broker {broker}, which the cluster does not have."
        for broker in (caps.brokers if caps else ())
        if broker not in ids
    ]
    if problems:
        raise InvalidRequestError(problems)


def _caps(arrays: ClusterArrays, caps: BrokerCaps) -> tuple[Floats, Floats]:
    found = [caps.of(broker) for broker in arrays.brokers.ids.tolist()]

    def row(resource: Resource) -> list[float]:
        if resource is Resource.BYTES:
            return [np.inf] * len(found)
        values = (getattr(limits, resource.value) for limits in found)
        return [np.inf if value is None else float(np.floor(value)) for value in values]

    placed = np.array([row(resource) for resource in PLACED], float).reshape(len(PLACED), -1)
    slack = arrays.brokers.slack_bytes
    if slack is not None and any(limits.disk_fraction is not None for limits in found):
        held = broker_sums(arrays.rows, arrays.size_bytes.astype(float), len(found))
        capped = np.array([limits.disk_fraction is not None for limits in found])
        room = np.where(capped, slack, np.inf)
        placed[PLACED.index(Resource.BYTES)] = np.maximum(held + room, 0)
    return placed, np.array([row(resource) for resource in LED], float).reshape(len(LED), -1)


def _groups(arrays: ClusterArrays, sets: tuple[BrokerSet, ...]) -> tuple[Ints, Mask]:
    ids = arrays.brokers.ids
    allowed = np.ones((len(sets) + 1, len(ids)), bool)
    for number, item in enumerate(sets, 1):
        allowed[number] = np.isin(ids, item.brokers)
        if item.exclusive:
            allowed[0] &= ~allowed[number]
    number_of = {item.name: number for number, item in enumerate(sets, 1)}
    group_of = []
    for topic, internal in zip(arrays.topics, arrays.internal.tolist(), strict=True):
        found = set_of_topic(sets, topic, internal=internal)
        group_of.append(0 if found is None else number_of[found.name])
    return np.array(group_of, np.int64), allowed


def groups(arrays: ClusterArrays) -> Ints:
    """(P,) the group of each partition; all 0 without sets."""
    limits = arrays.limits
    if limits is None or not limits.has_sets:
        return np.zeros(len(arrays.rows), np.int64)
    of_partitions: Ints = limits.group_of[arrays.topic_of]
    return of_partitions


def outside_sets(arrays: ClusterArrays, rows: Rows) -> Mask:
    """(P, R) replicas on brokers that do not belong to the set of their topic."""
    limits = arrays.limits
    if limits is None or not limits.has_sets:
        return np.zeros(rows.shape, bool)
    outside: Mask = (rows != NONE) & ~limits.allowed[groups(arrays)[:, None], rows]
    return outside


def set_name(arrays: ClusterArrays, partition: int) -> str:
    """The set of a partition's topic, as a sentence names it."""
    limits = arrays.limits
    number = 0 if limits is None else int(groups(arrays)[partition])
    if limits is None or number == 0:
        return "an exclusive broker set of other topics"
    return f"its broker set {limits.names[number]}"


def loads_of(arrays: ClusterArrays, rows: Rows, resource: Resource) -> Floats:
    """(B,) what brokers hold, or lead by preference, under these rows."""
    weight = partition_weight(arrays, resource)
    some = rows[:, :1] if resource in LED else rows
    return broker_sums(some, weight, len(arrays.brokers.ids))


def above_caps(arrays: ClusterArrays, before: Rows, after: Rows) -> list[tuple[Resource, int]]:
    """Brokers that a layout takes above a cap, or further above, by resource."""
    limits = arrays.limits
    if limits is None:
        return []
    found = []
    for rows, kinds in ((limits.placed, PLACED), (limits.led, LED)):
        for cap, resource in zip(rows, kinds, strict=True):
            if np.isfinite(cap).any():
                was, now = (loads_of(arrays, side, resource) for side in (before, after))
                over = np.flatnonzero((now > cap) & (now > was))
                found += [(resource, int(b)) for b in over]
    return found
