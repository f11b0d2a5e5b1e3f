"""What brokers share: bytes on disk, replicas, leaders, bytes in and bytes out per second.

Bytes, replicas and bytes in come with every replica of a partition; leaders and bytes out (to
consumers and followers) with its leader alone, and so move without copying anything.

Two more count only where a request asks for them: what a broker would send if every replica on it
led comes with every replica, and what producers write into the leaders with the leader.
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
    POTENTIAL_BYTES_OUT = "potential_bytes_out"  # per second, if every replica led
    LEADER_BYTES_IN = "leader_bytes_in"  # per second, what producers write


PLACED = (Resource.BYTES, Resource.REPLICAS, Resource.BYTES_IN, Resource.POTENTIAL_BYTES_OUT)
"""Resources that come with a replica, in the order of the rows of every (K, …) array; the last one
has a row only where it is asked for, see :func:`placed`.
"""


LED = (Resource.LEADERS, Resource.BYTES_OUT, Resource.LEADER_BYTES_IN)
"""Resources that come with the leader; the last one has a row only where it is asked for, see
:func:`led`.
"""


MEASURED_AS: Mapping[Resource, Resource] = {
    Resource.BYTES_IN: Resource.BYTES_IN,
    Resource.BYTES_OUT: Resource.BYTES_OUT,
    Resource.POTENTIAL_BYTES_OUT: Resource.BYTES_OUT,
    Resource.LEADER_BYTES_IN: Resource.BYTES_IN,
}
"""Each rate → the one of a partition, as the history knows it, that its load is made of."""


RATES = frozenset(MEASURED_AS)


OPTIONAL = frozenset({Resource.POTENTIAL_BYTES_OUT, Resource.LEADER_BYTES_IN})
"""Resources that a plan knows nothing of unless its request gives them a tolerance."""


LOOSE = float("inf")
"""The tolerance of a resource that may be spread in any way."""


DEFAULT_TOLERANCES: Mapping[Resource, float] = {
    Resource.BYTES: 0.02,
    Resource.REPLICAS: LOOSE,
    Resource.BYTES_IN: 0.05,
    Resource.LEADERS: LOOSE,
    Resource.BYTES_OUT: 0.05,
    Resource.POTENTIAL_BYTES_OUT: LOOSE,
    Resource.LEADER_BYTES_IN: LOOSE,
}
"""Disk and traffic in balance, few moves."""


RESOURCE_NAMES: Mapping[Resource, str] = {
    Resource.BYTES: "bytes",
    Resource.REPLICAS: "number of replicas",
    Resource.BYTES_IN: "bytes in per second",
    Resource.LEADERS: "number of leaders",
    Resource.BYTES_OUT: "bytes out per second",
    Resource.POTENTIAL_BYTES_OUT: "potential bytes out per second",
    Resource.LEADER_BYTES_IN: "bytes into leaders per second",
}
"""As a sentence says them."""


def asked(tolerances: Mapping[str, float | None]) -> frozenset[Resource]:
    """The optional resources that these tolerances of a request give a limit."""
    return frozenset(r for r in OPTIONAL if tolerances.get(r) not in (None, LOOSE))


def placed(tolerances: Mapping[str, float | None]) -> tuple[Resource, ...]:
    """Those of :data:`PLACED` that have a row, by the tolerances of a request."""
    return tuple(r for r in PLACED if r not in OPTIONAL or r in asked(tolerances))


def led(tolerances: Mapping[str, float | None]) -> tuple[Resource, ...]:
    """Those of :data:`LED` that have a row, by the tolerances of a request."""
    return tuple(r for r in LED if r not in OPTIONAL or r in asked(tolerances))
