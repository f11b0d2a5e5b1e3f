"""The load of each partition in each resource, and the relative capacity of brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rehome.domain.array_types import Floats, Mask
from rehome.domain.resources import MEASURED_AS, RATES, Resource, placed_resources
from rehome.planning.model.arrays import ClusterArrays


def is_known(arrays: ClusterArrays, resource: Resource) -> bool:
    """Whether the cluster's load of a resource is known, and there is any."""
    if resource not in RATES:
        return True
    return bool(partition_weight(arrays, resource).any())


def known_resources(arrays: ClusterArrays) -> frozenset[Resource]:
    """The resources whose load is known."""
    return frozenset(resource for resource in Resource if is_known(arrays, resource))


def partition_weight(arrays: ClusterArrays, resource: Resource) -> Floats:
    """(P,) the load that one replica, or the leader, of each partition puts on its broker.

    Whole numbers held as floats, so that sums do not depend on the order of adding. Rates that
    the snapshot does not have are zero.
    """
    measured = MEASURED_AS[resource]
    if measured is Resource.BYTES:
        return arrays.size_bytes.astype(float)
    if measured is Resource.REPLICAS:
        return np.ones(len(arrays.size_bytes))
    rates = arrays.bytes_in if measured is Resource.BYTES_IN else arrays.bytes_out
    return np.zeros(len(arrays.size_bytes)) if rates is None else np.rint(rates).astype(float)


def placed_weights(
    arrays: ClusterArrays, resources: Sequence[Resource] = placed_resources({})
) -> Floats:
    """(K, P) weight of one replica in each of these resources."""
    return np.stack([partition_weight(arrays, resource) for resource in resources])


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
