"""What brokers share: bytes on disk, replicas, leaders, bytes in and bytes out per second.

Bytes, replicas and bytes in come with every replica of a partition; leaders and bytes out (to
consumers and followers) with its leader alone, and so move without copying anything.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import numpy as np

from include.planning.arrays import ClusterArrays, Floats, Mask


class Resource(enum.StrEnum):
    """Something that brokers hold a share of."""

    BYTES = "bytes"
    REPLICAS = "replicas"
    BYTES_IN = "bytes_in"  # per second
    LEADERS = "leaders"
    BYTES_OUT = "bytes_out"  # per second


PLACED = (Resource.BYTES, Resource.REPLICAS, Resource.BYTES_IN)
"""Resources that come with a replica, in the order of the rows of every (K, …) array."""

LED = (Resource.LEADERS, Resource.BYTES_OUT)
"""Resources that come with the leader."""

RATES = frozenset({Resource.BYTES_IN, Resource.BYTES_OUT})

LOOSE = float("inf")
"""The tolerance of a resource that may be spread in any way."""

DEFAULT_TOLERANCES: Mapping[Resource, float] = {
    Resource.BYTES: 0.02,
    Resource.REPLICAS: LOOSE,
    Resource.BYTES_IN: 0.05,
    Resource.LEADERS: LOOSE,
    Resource.BYTES_OUT: 0.05,
}
"""Disk and traffic in balance, few moves."""

NAMES: Mapping[Resource, str] = {
    Resource.BYTES: "bytes",
    Resource.REPLICAS: "number of replicas",
    Resource.BYTES_IN: "bytes in per second",
    Resource.LEADERS: "number of leaders",
    Resource.BYTES_OUT: "bytes out per second",
}
"""As a sentence says them."""


def known(arrays: ClusterArrays, resource: Resource) -> bool:
    """Whether the cluster's load of a resource is known, and there is any."""
    if resource not in RATES:
        return True
    return bool(partition_weight(arrays, resource).any())


def known_resources(arrays: ClusterArrays) -> frozenset[Resource]:
    """The resources whose load the cluster tells."""
    return frozenset(resource for resource in Resource if known(arrays, resource))


def partition_weight(arrays: ClusterArrays, resource: Resource) -> Floats:
    """(P,) what one replica, or the leader, of each partition puts on its broker.

    Whole numbers held as floats, so that sums do not depend on the order of adding. Rates that
    the snapshot does not have are zero.
    """
    if resource is Resource.BYTES:
        return arrays.size_bytes.astype(float)
    if resource in RATES:
        rates = arrays.bytes_in if resource is Resource.BYTES_IN else arrays.bytes_out
        if rates is not None:
            return np.rint(rates).astype(float)
        return np.zeros(len(arrays.size_bytes))
    return np.ones(len(arrays.size_bytes))


def placed_weights(arrays: ClusterArrays) -> Floats:
    """(K, P) weight of one replica in each of :data:`PLACED`."""
    return np.stack([partition_weight(arrays, resource) for resource in PLACED])


def capacities(arrays: ClusterArrays, hosts: Mask, given: Mapping[int, float]) -> Floats:
    """(B,) relative size of the brokers.

    By their disks when all hosts report them, else equal; times what the request gives.

    :param given: broker id → weight; brokers that are not named weigh 1.
    """
    disks = arrays.brokers.capacity_bytes
    relative: Floats = np.ones(len(hosts))
    if hosts.any() and (disks[hosts] > 0).all():
        relative = disks / max(1.0, float(disks[hosts].mean()))
    weight: Floats = np.array([given.get(int(broker), 1.0) for broker in arrays.brokers.ids])
    return np.multiply(relative, weight)
