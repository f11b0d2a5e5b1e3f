"""Numbers of a whole rebalance: which phases a cluster has, and how much of the work."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.planning.effort.shed_options import Inner


@dataclass(frozen=True, slots=True)
class RebalanceOptions:
    """Which phases a cluster of a size has, and their parts of the work. Sizes are in replicas.

    :param small: size up to which a cluster is small.
    :param middle: size up to which a cluster is of middle size: its copies are merged, topics are
        kept to at every step, and replicas move into broker sets one by one. For larger ones that
        would take longer than all other steps.
    :param large: size from which on a cluster is large: where topics have bands, topic repair
        undoes much of what exchanges and programs save; where only bytes have, a few thousand
        exchanges of sources change little.
    :param unmet_from: size from which on other starts are tried if the first search leaves bands
        unmet (fewer replicas seldom add up to a share), and a poor plan is improved by large
        neighbourhood search.
    :param unmet_up_to: size up to which other starts are tried then: with more replicas each trial
        takes long.
    :param exchanged: the largest copies that may be replaced by smaller ones.
    :param replicas_per_exchange: in large clusters, one copy per so many replicas may.
    :param exchanged_up_to: size up to which that is tried: with more replicas each copy takes too
        long.
    :param other_inner: other starts: values for ``inner`` of ShedOptions. The cheapest result is
        seldom the cheapest one after it is reconsidered: thorough plans reconsider each.
    :param poor: bytes copied / lower bound, from which on a small cluster's plan is improved by
        large neighbourhood search.
    :param for_fewer_moves: how many times a small plan's bytes may be copied so that fewer replicas
        move.
    :param for_fewer_over_bound: the same for the lower bound of bytes, if that is more.
    :param priced_up_to: size up to which linear programs are used: they take tens of times as long
        as the search.
    :param excess_price: about what it costs to remove a share of excess, in shares of a broker's
        bytes: what filling leaves decides between it and linear programs.
    :param programs_part: part of what is left of the budget up to which linear programs begin: the
        local search finishes what they make.
    :param with_topics: value for ``inner`` of ShedOptions if topics of a large cluster are repaired
        at the end: brokers need slack in rate and count for that. Slack in bytes would cost bytes.
    :param relieved_inner: value for ``inner`` of ShedOptions for brokers that give up load because
        topic repair fails at the edges of their bands.
    :param most_reliefs: how often they do so at most.
    :param relieved_brokers: the fraction of all brokers that may do so after the first time: the
        time is proportional to their number, and each repetition gains less.
    :param every_nth: for that, one replica of so many is considered.
    :param first_plan: part of the budget of work for the first plan; the rest is for planning again
        on its result.
    :param part_of_work: part of what is left of the budget for one phase: the first search of a
        small cluster, one from another start, the local search of loads, exchanges of copies.
    :param search_rounds: rounds of search and rack repair.
    :param leaders_retried_up_to: partitions up to which, if bytes into leaders have a target,
        leaders are balanced again with other sources of copies. With more, that takes long and is
        seldom better: three targets for leaders are met in hardly any layout.
    """

    small: int = 2_000
    middle: int = 20_000
    large: int = 300_000
    unmet_from: int = 100
    unmet_up_to: int = 600
    exchanged: int = 1_000
    replicas_per_exchange: int = 200
    exchanged_up_to: int = 2_000_000
    other_inner: tuple[Inner, ...] = (
        (1.0, 1.0, 1.0),
        (0.9, 0.5, 0.5),
        (0.98, 0.0, 0.0),
    )
    poor: float = 1.1
    for_fewer_moves: float = 1.01
    for_fewer_over_bound: float = 1.02
    priced_up_to: int = 5_000_000
    excess_price: float = 0.3
    programs_part: float = 0.7
    with_topics: Inner = (0.98, 0.5, 0.5)
    relieved_inner: Inner = (0.6, 0.4, 0.4)
    most_reliefs: int = 3
    relieved_brokers: float = 0.2
    every_nth: int = 2
    first_plan: float = 0.75
    part_of_work: float = 0.5
    search_rounds: int = 4
    leaders_retried_up_to: int = 10_000


REBALANCE = RebalanceOptions()
