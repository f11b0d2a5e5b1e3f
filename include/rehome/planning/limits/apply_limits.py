"""Apply the caps and broker sets of a request to a cluster, and measure layouts against them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.request.limits import BrokerCaps, BrokerSet, set_of_topic
from rehome.domain.resources import LED, OPTIONAL, PLACED, Resource
from rehome.planning.model.arrays import ClusterArrays, broker_sums
from rehome.planning.model.limits import NO_SET, Limits
from rehome.planning.model.resource_loads import partition_weight


def apply_limits(
    arrays: ClusterArrays, caps: BrokerCaps | None, sets: Iterable[BrokerSet] | None
) -> ClusterArrays:
    """The cluster with its limits; unchanged if there are none.

    Unknown brokers in a cap or a set are ignored here; the dry run reports them.
    """
    sets = tuple(sets or ())
    if not caps and not sets:
        return arrays
    return replace(arrays, limits=limits_of(arrays, caps or BrokerCaps(), sets))


def limits_of(arrays: ClusterArrays, caps: BrokerCaps, sets: tuple[BrokerSet, ...]) -> Limits:
    """Caps and broker sets on the indexes of a cluster."""
    placed, led = _caps(arrays, caps)
    group_of, allowed = _groups(arrays, sets)
    names = (NO_SET, *(item.name for item in sets))
    return Limits(placed, led, group_of, allowed, names, sets)


def without_idle_caps(arrays: ClusterArrays) -> ClusterArrays:
    """The same without caps that no layout can exceed: the search without limits finds better plans
    of small clusters.
    """
    limits = arrays.limits
    if limits is None:
        return arrays
    placed, led = (
        np.where(
            caps < np.array([[partition_weight(arrays, r).sum()] for r in kinds]), caps, np.inf
        )
        for caps, kinds in ((limits.placed, PLACED), (limits.led, LED))
    )
    if not limits.has_sets and np.isinf(placed).all() and np.isinf(led).all():
        return replace(arrays, limits=None)
    return replace(arrays, limits=replace(limits, placed=placed, led=led))


def _caps(arrays: ClusterArrays, caps: BrokerCaps) -> tuple[Floats, Floats]:
    broker_caps = [caps.of(broker) for broker in arrays.brokers.ids.tolist()]

    def row(resource: Resource) -> list[float]:
        if resource is Resource.BYTES or resource in OPTIONAL:
            return [np.inf] * len(broker_caps)
        values = (getattr(limits, resource.value) for limits in broker_caps)
        return [np.inf if value is None else float(np.floor(value)) for value in values]

    placed = np.array([row(resource) for resource in PLACED], float).reshape(len(PLACED), -1)
    slack = arrays.brokers.slack_bytes
    if slack is not None and any(limits.disk_fraction is not None for limits in broker_caps):
        broker_bytes = broker_sums(arrays.rows, arrays.size_bytes.astype(float), len(broker_caps))
        capped = np.array([limits.disk_fraction is not None for limits in broker_caps])
        room = np.where(capped, slack, np.inf)
        placed[PLACED.index(Resource.BYTES)] = np.maximum(broker_bytes + room, 0)
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
        broker_set = set_of_topic(sets, topic, internal=internal)
        group_of.append(0 if broker_set is None else number_of[broker_set.name])
    return np.array(group_of, np.int64), allowed


def groups(arrays: ClusterArrays) -> Ints:
    """(P,) the group of each partition; all 0 without sets."""
    if arrays.limits is None:
        return np.zeros(len(arrays.rows), np.int64)
    return arrays.limits.groups_of(arrays.topic_of)


def outside_sets(arrays: ClusterArrays, rows: Rows) -> Mask:
    """(P, R) replicas on brokers outside the set of their topic."""
    limits = arrays.limits
    if limits is None or not limits.has_sets:
        return np.zeros(rows.shape, bool)
    outside: Mask = (rows != NONE) & ~limits.allowed[groups(arrays)[:, None], rows]
    return outside


def loads_of(arrays: ClusterArrays, rows: Rows, resource: Resource) -> Floats:
    """(B,) load of brokers in a resource under these rows."""
    weight = partition_weight(arrays, resource)
    some = rows[:, :1] if resource in LED else rows
    return broker_sums(some, weight, len(arrays.brokers.ids))


def above_caps(arrays: ClusterArrays, before: Rows, after: Rows) -> list[tuple[Resource, int]]:
    """Brokers that a layout takes above a cap (or further above it), by resource."""
    limits = arrays.limits
    if limits is None:
        return []
    brokers_above = []
    for rows, kinds in ((limits.placed, PLACED), (limits.led, LED)):
        for cap, resource in zip(rows, kinds, strict=True):
            if np.isfinite(cap).any():
                was, now = (loads_of(arrays, side, resource) for side in (before, after))
                over = np.flatnonzero((now > cap) & (now > was))
                brokers_above += [(resource, int(b)) for b in over]
    return brokers_above
