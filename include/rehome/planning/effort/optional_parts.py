"""Optional parts of the rebalance search, by the request's effort."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.domain.request.request import Effort


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts in addition to shed, fill and local search. ``make bench-ablation`` measures each.

    :param programs_from: large clusters: linear programs make another start if bytes copied, with
        what removing the excess will copy, / lower bound is above this; infinite: never.
    :param both_starts: both plans are finished, and the better one is kept; False: the one that
        promises to be cheaper is finished.
    :param large_programs: the same for large clusters whose topics have bands: topic repair then
        undoes much of what programs save.
    :param whole_replicas: with them, mixed-integer programs for replicas that a linear program
        splits.
    :param neighbourhoods: small clusters: large neighbourhood search over three brokers at a time,
        by mixed-integer programs.
    :param other_starts: small clusters: further starts for each price of a move, at most, which
        differ in the wanted loads.
    :param reconsidered: small clusters: for so many of the results at each price, the best ones:
        undo the largest copies one by one, and repair by trades.
    :param fewest_moves: small clusters: fewer moves for slightly more bytes, by an integer program.
    :param fixed_point: small clusters: plan again on the result until nothing changes.
    :param exchange: replace large copies by smaller ones.
    :param relieve_leaders: exchange copies so that no leader sends too much.
    :param near_sources: exchange copies so that fewer bytes cross zones.
    :param work: budget of the search's work, in multiples of the usual one; see
        :func:`~rehome.planning.effort.work.budget_of_work`.
    """

    programs_from: float = 1.04
    both_starts: bool = True
    large_programs: bool = True
    whole_replicas: bool = True
    neighbourhoods: bool = True
    other_starts: int = 3
    reconsidered: int = 4
    fewest_moves: bool = True
    fixed_point: bool = True
    exchange: bool = True
    relieve_leaders: bool = True
    near_sources: bool = True
    work: float = 50.0


THOROUGH = Parts()
FAST = Parts(
    programs_from=1.1,
    both_starts=False,
    large_programs=False,
    whole_replicas=False,
    neighbourhoods=False,
    other_starts=1,
    reconsidered=1,
    work=1.0,
)


def parts_of(effort: Effort) -> Parts:
    """The parts that an effort has."""
    return FAST if effort is Effort.FAST else THOROUGH
