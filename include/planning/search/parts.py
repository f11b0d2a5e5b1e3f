"""Which parts of a rebalance are in use: each can be left out, to measure what it brings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts beside the search itself. ``make bench-ablation`` measures each.

    :param programs: plans of large clusters by linear programs.
    :param whole_replicas: in these, mixed-integer programs for replicas that a linear one divides.
    :param neighbourhoods: small clusters: three brokers at a time by mixed-integer programs.
    :param several_starts: small clusters: several places in the bands to aim at.
    :param reconsider: small clusters: the largest copies go home and trades follow, one by one.
    :param fixed_point: small clusters: the plan takes in what plans on its result would do.
    :param exchange: up to 300,000 replicas: large copies are replaced by smaller ones.
    :param relieve_leaders: copies are traded so that no leader sends too much.
    :param near_sources: copies are traded so that fewer bytes cross zones.
    """

    programs: bool = True
    whole_replicas: bool = True
    neighbourhoods: bool = True
    several_starts: bool = True
    reconsider: bool = True
    fixed_point: bool = True
    exchange: bool = True
    relieve_leaders: bool = True
    near_sources: bool = True


EVERYTHING = Parts()
