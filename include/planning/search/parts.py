"""Which parts of a rebalance are in use: by the request's effort, and each can be left out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from include.domain.request.request import Effort

NEVER = inf
"""As ``Parts.programs_from``: no plan is made by programs."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts beside the search itself. ``make bench-ablation`` measures each.

    :param programs_from: large clusters: bytes copied, over the bound of bytes alone, from which on
        another plan is made by linear programs.
    :param whole_replicas: in these, mixed-integer programs for replicas that a linear one divides.
    :param neighbourhoods: small clusters: three brokers at a time by mixed-integer programs.
    :param several_starts: small clusters: several places in the bands to aim at.
    :param reconsider: small clusters: the largest copies go home and trades follow, one by one.
    :param fixed_point: small clusters: the plan takes in what plans on its result would do.
    :param exchange: large copies are replaced by smaller ones.
    :param relieve_leaders: copies are traded so that no leader sends too much.
    :param near_sources: copies are traded so that fewer bytes cross zones.
    """

    programs_from: float = 1.04
    whole_replicas: bool = True
    neighbourhoods: bool = True
    several_starts: bool = True
    reconsider: bool = True
    fixed_point: bool = True
    exchange: bool = True
    relieve_leaders: bool = True
    near_sources: bool = True


THOROUGH = Parts()
FAST = Parts(programs_from=1.1, whole_replicas=False, neighbourhoods=False)


def parts_of(effort: Effort) -> Parts:
    """The parts that an effort has."""
    return FAST if effort is Effort.FAST else THOROUGH
