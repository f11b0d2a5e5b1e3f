"""What brokers share: bytes on disk, replicas, leaders, bytes in and bytes out per second.

Bytes, replicas and bytes in come with every replica of a partition; leaders and bytes out (to
consumers and followers) with its leader alone, and so move without copying anything.

Each is declared once, in :data:`RESOURCE_FACTS`: planner, gate, form, report and sentences derive
the rest.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

LOOSE = float("inf")
"""The tolerance of a resource that may be spread in any way."""


class Resource(enum.StrEnum):
    """Something that brokers hold a share of; rates are per second."""

    BYTES = "bytes"
    REPLICAS = "replicas"
    BYTES_IN = "bytes_in"
    LEADERS = "leaders"
    BYTES_OUT = "bytes_out"
    POTENTIAL_BYTES_OUT = "potential_bytes_out"
    LEADER_BYTES_IN = "leader_bytes_in"


@dataclass(frozen=True, slots=True)
class ResourceFacts:
    """All that is to be known of a resource.

    :param words: as a sentence says it.
    :param measured_as: the resource whose amount of a partition is its amount, too; None = itself.
    :param of_leader: it comes with the leader of a partition alone, not with every replica.
    :param tolerance: how far brokers may be off their share where a request does not say it.
    :param is_optional: a plan knows nothing of it unless its request gives it a tolerance.
    :param which: of an amount: which amount it is.
    :param about: what a form says of it, to be read after its name.
    """

    words: str
    measured_as: Resource | None = None
    of_leader: bool = False
    tolerance: float = LOOSE
    is_optional: bool = False
    which: str = ""
    about: str = ""


RESOURCE_FACTS: Mapping[Resource, ResourceFacts] = {
    Resource.BYTES: ResourceFacts("bytes", tolerance=0.02),
    Resource.REPLICAS: ResourceFacts("number of replicas"),
    Resource.BYTES_IN: ResourceFacts("bytes in per second", tolerance=0.05, which=" taken in"),
    Resource.LEADERS: ResourceFacts("number of leaders", Resource.REPLICAS, of_leader=True),
    Resource.BYTES_OUT: ResourceFacts("bytes out per second", of_leader=True, tolerance=0.05),
    Resource.POTENTIAL_BYTES_OUT: ResourceFacts(
        "potential bytes out per second",
        Resource.BYTES_OUT,
        is_optional=True,
        which=" to send if every replica on it led",
        about="what a broker would send if every replica on it led",
    ),
    Resource.LEADER_BYTES_IN: ResourceFacts(
        "bytes into leaders per second",
        Resource.BYTES_IN,
        of_leader=True,
        is_optional=True,
        about="what producers write into its leaders",
    ),
}
"""Disk and traffic in balance, few moves."""


MEASURED_AS: Mapping[Resource, Resource] = {
    r: f.measured_as or r for r, f in RESOURCE_FACTS.items()
}
"""Each resource → the one whose amount of a partition its load is made of."""


RATES = frozenset(r for r in Resource if MEASURED_AS[r] in (Resource.BYTES_IN, Resource.BYTES_OUT))
"""Resources of rates, which a snapshot may not know."""


PLACED = tuple(r for r in Resource if not RESOURCE_FACTS[r].of_leader)
"""Resources that come with a replica, in the order of the rows of every (K, …) array, optional ones
last: they have a row only where they are asked for, see :func:`placed`.
"""


LED = tuple(r for r in Resource if RESOURCE_FACTS[r].of_leader)
"""Resources that come with the leader, optional ones last: they have a row only where they are
asked for, see :func:`led`.
"""


OPTIONAL = tuple(r for r in Resource if RESOURCE_FACTS[r].is_optional)
"""Resources that a plan knows nothing of unless its request gives them a tolerance."""


DEFAULT_TOLERANCES: Mapping[Resource, float] = {r: f.tolerance for r, f in RESOURCE_FACTS.items()}


RESOURCE_NAMES: Mapping[Resource, str] = {r: f.words for r, f in RESOURCE_FACTS.items()}
"""As a sentence says them."""


def asked_resources(tolerances: Mapping[str, float | None]) -> frozenset[Resource]:
    """The optional resources that these tolerances of a request give a limit."""
    return frozenset(r for r in OPTIONAL if tolerances.get(r) not in (None, LOOSE))


def placed_resources(tolerances: Mapping[str, float | None]) -> tuple[Resource, ...]:
    """Those of :data:`PLACED` that have a row, by the tolerances of a request."""
    return _with_rows(PLACED, tolerances)


def led_resources(tolerances: Mapping[str, float | None]) -> tuple[Resource, ...]:
    """Those of :data:`LED` that have a row, by the tolerances of a request."""
    return _with_rows(LED, tolerances)


def _with_rows(
    resources: tuple[Resource, ...], tolerances: Mapping[str, float | None]
) -> tuple[Resource, ...]:
    """The first ones, up to the last that counts: a resource has the same row in every array. Those
    between that are not asked for may be spread in any way.
    """
    with_tolerance = asked_resources(tolerances)
    counts = [r not in OPTIONAL or r in with_tolerance for r in resources]
    return resources[: len(counts) - counts[::-1].index(True)]
