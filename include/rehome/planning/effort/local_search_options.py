"""Numbers of the local search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocalSearchOptions:
    """How many trades are scored and checked, and when the search gives up.

    :param quick_replicas: a broker's replicas that quick pushes try.
    :param quick_brokers: brokers that quick pushes try.
    :param first_donors: brokers with the largest surplus that quick pulls try.
    :param most_weighed: trades that are scored at once; of more, a sample.
    :param partners: brokers with which swaps are tried in one step.
    :param partners_in_all: the same in all steps.
    :param near_the_edge: deviation from the middle of a band, in its half widths, from which on it
        counts when partners are chosen.
    :param most_deviation: the most that such a deviation counts.
    :param first_sample: replicas of a broker that are candidates for swaps at first.
    :param sample: the same before the search gives up.
    :param towards_large: how much denser a sample is among large replicas, if further resources
        have bands: the n-th of N has rank 1 - (1 - n / N) to this power. Most replicas are small,
        and a swap of small ones helps one band by what hurts another; one of large ones has a
        choice of ratios.
    :param candidates: scored trades that are checked for validity at first, best first; and in one
        batch later.
    :param checked: the same before the search gives up.
    :param targets_per_replica: if further resources have bands: of trades that push one replica to
        several brokers, so many are checked.
    :param least_part: if further resources have bands: the part of a broker's excess that trades
        have to remove if swaps are not to be tried first.
    :param least_cost: of a trade, in shares: so trades without copies are ranked by gain.
    :param window: steps between two looks at the excess.
    :param most_left: the search ends when a window leaves more than this fraction of the excess.
    """

    quick_replicas: int = 24
    quick_brokers: int = 140
    first_donors: int = 4
    most_weighed: int = 1_000_000
    partners: int = 8
    partners_in_all: int = 48
    near_the_edge: float = 0.9
    most_deviation: float = 2.0
    first_sample: int = 40
    sample: int = 128
    towards_large: int = 4
    candidates: int = 400
    checked: int = 16_384
    targets_per_replica: int = 4
    least_part: float = 0.15
    least_cost: float = 2e-4
    window: int = 200
    most_left: float = 0.97


LOCAL_SEARCH = LocalSearchOptions()


@dataclass(frozen=True)
class StepSize:
    """How much one step of the search does for a broker.

    :param trades: valid trades that suffice.
    :param least_of_best: fraction of the best trade's gain per byte that the others must reach.
    :param least_of_own: fraction of its first gain that a trade must still have when it is made.
    """

    trades: int
    least_of_best: float
    least_of_own: float


USUAL_STEP, LONG_STEP = StepSize(40, 0.3, 0.5), StepSize(80, 0.1, 0.3)
"""If further resources have bands, brokers need many trades. Long steps are half as many."""
