"""What brokers share: bytes on disk, replicas, leaders, bytes in and bytes out per second.

Bytes, replicas and bytes in come with every replica of a partition; leaders and bytes out (to
consumers and followers) with its leader alone, and so move without copying anything.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping


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
