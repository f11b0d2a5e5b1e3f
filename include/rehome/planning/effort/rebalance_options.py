"""Numbers of a whole rebalance: which phases a cluster has, and how much of the work."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.planning.effort.shed_options import Inner


@dataclass(frozen=True, slots=True)
class RebalanceOptions:
    """Which phases a cluster of a size has, and their parts of the work. Sizes are in replicas.

    :param small: size up to which a cluster is small.
    :param merged_up_to: size up to which copies of a cluster that is not small are merged.
    :param unmet_from: size from which on other starts are tried if the first search leaves bands
        unmet (fewer replicas seldom add up to a share), and a poor plan is improved by large
        neighbourhood search.
    :param unmet_up_to: size up to which other starts are tried then: with more replicas each trial
        takes long.
    :param exchanged: the largest copies that may be replaced by smaller ones.
    :param replicas_per_exchange: in large clusters, one copy per so many replicas may.
    :param exchanged_up_to: size up to which that is tried: with more replicas each copy takes too
        long.
    :param with_topics_up_to: the same if topics have bands; topic repair then undoes much of it.
    :param other_inner: other starts: values for ``inner`` of ShedOptions. The cheapest result is
        seldom the cheapest one after it is reconsidered: thorough plans reconsider each.
    :param unmet_reconsidered: layouts that are reconsidered per price of a move if bands are still
        not met: those closest to the bands. If no plan can meet the bands, each takes several times
        as long.
    :param poor: bytes copied / lower bound, from which on a small cluster's plan is improved by
        large neighbourhood search.
    :param for_fewer_moves: how many times a small plan's bytes may be copied so that fewer replicas
        move.
    :param for_fewer_over_bound: the same for the lower bound of bytes, if that is more.
    :param part_programs_from: the least ``programs_from`` for a part of a cluster, see Parts.
    :param priced_up_to: size up to which linear programs are used: they take tens of times as long
        as the search.
    :param with_topics: value for ``inner`` of ShedOptions if topics of a large cluster are repaired
        at the end: brokers need slack in rate and count for that. Slack in bytes would cost bytes.
    :param relieved_inner: value for ``inner`` of ShedOptions for brokers that give up load because
        topic repair fails at the edges of their bands.
    :param most_reliefs: how often they do so at most.
    :param relieved_brokers: the fraction of all brokers that may do so after the first time: the
        time is proportional to their number, and each repetition gains less.
    :param every_nth: for that, one replica of so many is considered.
    :param first_search: part of the budget of work for the first search of a small cluster.
    :param starts: part of what is left for searches from other starts.
    :param part_for_loads: part of what is left of a search's work for the local search of loads,
        before topics are repaired.
    :param part_for_exchanges: the same for exchanges of copies.
    :param search_rounds: rounds of search and rack repair.
    """

    small: int = 2_000
    merged_up_to: int = 20_000
    unmet_from: int = 100
    unmet_up_to: int = 600
    exchanged: int = 1_000
    replicas_per_exchange: int = 200
    exchanged_up_to: int = 2_000_000
    with_topics_up_to: int = 300_000
    other_inner: tuple[Inner, ...] = (
        (1.0, 1.0, 1.0),
        (0.9, 0.5, 0.5),
        (0.98, 0.0, 0.0),
    )
    unmet_reconsidered: int = 1
    poor: float = 1.1
    for_fewer_moves: float = 1.01
    for_fewer_over_bound: float = 1.02
    part_programs_from: float = 1.08
    priced_up_to: int = 5_000_000
    with_topics: Inner = (0.98, 0.5, 0.5)
    relieved_inner: Inner = (0.6, 0.4, 0.4)
    most_reliefs: int = 3
    relieved_brokers: float = 0.2
    every_nth: int = 2
    first_search: float = 0.5
    starts: float = 0.5
    part_for_loads: float = 0.5
    part_for_exchanges: float = 0.5
    search_rounds: int = 4


REBALANCE = RebalanceOptions()
