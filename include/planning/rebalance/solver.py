"""The search of a rebalance: every broker into its bands, with few bytes and few moves.

1. *shed and fill*: brokers give up replicas above a level chosen per domain, largest first and
   never too many; these go, largest first, to the valid broker that lacks most;
2. *polish*: for the broker furthest outside its bands, the trades that remove the most excess
   per byte copied: push a replica away, pull one in, or swap two;
3. *undo*: moved replicas go home where that leaves all bands as well met;
4. partitions that were unevenly spread and have moved are made even, and the search goes on;
5. where the plan is far above the bound of bytes, for resources pull against each other, another
   one is made by prices, and the cheaper one is kept; that of a small cluster is improved by
   deciding about three brokers at once, and so is one that leaves bands unmet.

It ends when no trade helps. Planning again on the result plans nothing where all brokers are in
their bands; for small clusters where some are not, see ``again``.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from operator import itemgetter

import numpy as np

from include.domain.array_types import NONE, Floats, Rows
from include.errors import InvalidRequestError
from include.planning.placement.rack_constraint import RackConstraint
from include.planning.placement.replica_sets import Placer
from include.planning.programs.lp_rounding import is_free_of_racks, round_lp
from include.planning.programs.neighbourhood_mip import search_neighbourhoods
from include.planning.rebalance.problem import inside_sets
from include.planning.rebalance.reconsider import reconsider
from include.planning.result.lower_bounds import rebalance_bound
from include.planning.search.broker_shed import BYTES, RATE
from include.planning.search.cheaper_copies import exchange_copies
from include.planning.search.fill import fill
from include.planning.search.local_search import LEAST_CHANGE, LocalSearch
from include.planning.search.shed import INNER, Inner, narrow, shed, wanted_loads
from include.planning.search.state import Problem, Search
from include.planning.search.topic_repair import TopicRepair
from include.planning.search.undo_moves import undo_needless_moves

SMALL_CLUSTER = 2_000
"""Slots up to which a cluster is small."""

UNMET_FROM, UNMET_UP_TO = 100, 600
"""The same, if the first search leaves bands unmet, from and up to which others are tried: fewer
replicas seldom add up to a share whatever is tried, and of more, each trial takes long. From the
first one on, a poor plan is improved by deciding about three brokers at once.
"""

EXCHANGED, ONE_OF = 1_000, 200
"""Copies, the largest ones, that may be replaced by smaller ones; in large clusters one for each
two hundred slots.
"""

EXCHANGED_UP_TO, WITH_TOPICS_UP_TO = 2_000_000, 300_000
"""Slots up to which that is tried: of more, each copy takes too long; and where topics are to be
spread, which then undoes much of it.
"""

OTHER_INNER: tuple[Inner, ...] = (
    (1.0, 1.0, 1.0),
    (0.9, 0.5, 0.5),
    (0.98, 0.0, 0.0),
    (1.0, 0.5, 0.5),
    (0.8, 0.8, 0.8),
    (0.6, 0.6, 0.6),
)
"""See shed.INNER: other places to aim at. What each leads to is reconsidered by itself: the one
that costs least before that is seldom the one that costs least after it.
"""

FEW = 3
"""Of those for a part of a cluster, of which only the cheapest end is reconsidered."""

UNMET_WAYS = 2
"""Layouts whose copies are reconsidered where bands are still not met, those closest to the bands:
all would be tried where no plan meets the bands, and each takes several times as long there.
"""

POOR = 1.1
"""Bytes copied, over the bound of bytes alone, from which on a small cluster's plan is improved by
deciding about three brokers at once."""

DEARER = 1.08
"""Bytes copied, over the bound of bytes alone, from which on a plan of a part of a cluster is made
anew by prices; at least."""

PRICED_UP_TO = 5_000_000
"""Slots up to which that is done: it takes tens of times as long as the search."""

WITH_TOPICS: Inner = (0.98, 0.5, 0.5)
"""See shed.INNER: where topics of a large cluster are evened out in the end, brokers need room for
it. Room for bytes would cost bytes.
"""

ROOMY: Inner = (0.6, 0.4, 0.4)
RELIEVED, OF_FEW = 3, 0.2
"""Where loads are to lie of brokers at whose edges replicas that even topics out do not fit; how
often that is made so, and, but for the first time, for which part of the brokers at most: it takes
time by broker and brings less each time.
"""

ONE_IN = 2
"""Of a broker's replicas, those among which the ones that make such room are chosen."""

SEARCH_ROUNDS = 4
"""Rounds of search and repair of the racks of what has moved."""


def rebalance(problem: Problem, capacity: Floats, *, part_of_a_cluster: bool = False) -> None:
    """Rebalance the problem's layout in place.

    A small cluster is rebalanced in several ways, and the best one is kept.

    :param capacity: (B,) relative size of the brokers, for repairs of racks.
    :param part_of_a_cluster: one of many problems: a small one is given less time.
    """
    layout, start = problem.layout, problem.layout.origin
    if layout.arrays.limits is not None and layout.arrays.limits.has_sets:
        problem, start = inside_sets(problem, capacity)
    search = Search(problem)
    before = search.outside()
    if before <= 0:
        return
    after, copied = _search(search, capacity, INNER)
    if after > before - LEAST_CHANGE:
        layout.lay_out(start)
    if layout.arrays.limits is not None:
        return  # what follows knows neither caps nor broker sets
    if layout.rows.size <= SMALL_CLUSTER:
        may_be_unmet = UNMET_FROM <= layout.rows.size <= UNMET_UP_TO and not part_of_a_cluster
        if after <= 0 or may_be_unmet:
            _in_several_ways(problem, capacity, before, few=part_of_a_cluster)
        may_be_poor = problem.parts.neighbourhoods and layout.rows.size >= UNMET_FROM
        if may_be_poor and not part_of_a_cluster and _poor(problem):
            search_neighbourhoods(problem)
            undo_needless_moves(Search(problem))
            layout.refresh()
    elif layout.rows.size <= PRICED_UP_TO:
        dear = problem.parts.programs_from
        dear = max(dear, DEARER) if part_of_a_cluster else dear
        if (
            _priced(problem)
            and _over_bound(problem, copied) > dear
            and is_free_of_racks(Search(problem))
        ):
            _by_prices(problem, after)


def _in_several_ways(problem: Problem, capacity: Floats, before: float, *, few: bool) -> None:
    """Of the layout and of what other places to aim at lead to, keep the one closest to the bands
    that costs least once each is reconsidered.

    :param before: excess to begin with: other layouts count if it is lower, or, where the first
        one meets all bands, if they do, too.
    :param few: try few places, and reconsider only what costs least without it.
    """
    layout, others = problem.layout, OTHER_INNER if problem.parts.several_starts else ()
    ways = [(Search(problem).objective(), layout.rows.copy())]
    most = 0.0 if ways[0][0][0] <= 0 else before - LEAST_CHANGE
    for inner in others[:FEW] if few else others:
        layout.lay_out(layout.origin)
        search = Search(problem)
        after, _ = _search(search, capacity, inner)
        if after <= most and not any((layout.rows == rows).all() for _, rows in ways):
            ways.append((search.objective(), layout.rows.copy()))
    ways.sort(key=itemgetter(0))
    found: list[tuple[tuple[float, float], Rows]] = []
    for _, rows in ways[:1] if few else ways:
        if len(found) >= UNMET_WAYS and all(excess > 0 for (excess, _), _ in found):
            break
        layout.lay_out(rows)
        search = Search(problem)
        objective = reconsider(search) if problem.parts.reconsider else search.objective()
        found.append((objective, layout.rows.copy()))
    layout.lay_out(min(found, key=itemgetter(0))[1])


def _search(search: Search, capacity: Floats, inner: Inner) -> tuple[float, float]:
    """Move replicas towards the bands; the excess that is left, and bytes copied for the bands
    alone: before topics were evened out.
    """
    problem = search.problem
    layout, copied = problem.layout, 0.0
    evened_out_last = search.topic_counts is not None and layout.rows.size > SMALL_CLUSTER
    if evened_out_last:
        inner = WITH_TOPICS
    for _ in range(SEARCH_ROUNDS):
        search.strict = layout.rows.size <= SMALL_CLUSTER
        wanted = wanted_loads(search, inner)
        short = narrow(search, wanted)
        fill(search, wanted, shed(search, wanted, short), short)
        LocalSearch(search).run()
        if not evened_out_last or _is_tidied_at_once(search):
            undo_needless_moves(search)
            LocalSearch(search).run()
        _exchange(search)
        copied = search.copied()
        _even_topics(search)
        layout.refresh()
        if search.racks.even() or not _repair(problem, capacity):
            break
        search = Search(problem)
    return search.outside(), copied


def _exchange(search: Search) -> None:
    """Replace the largest copies by smaller ones."""
    replicas = search.flat.size
    most = EXCHANGED_UP_TO if search.topic_counts is None else WITH_TOPICS_UP_TO
    if search.problem.parts.exchange and replicas <= most:
        exchange_copies(search, max(EXCHANGED, replicas // ONE_OF))
        undo_needless_moves(search)


def _is_tidied_at_once(search: Search) -> bool:
    """Whether replicas go home before topics are evened out, and not only afterwards: where that is
    quick, or the plan seems so expensive that another one might be made by prices.
    """
    problem = search.problem
    if search.flat.size <= WITH_TOPICS_UP_TO:
        return True
    problem.layout.refresh()
    return _priced(problem) and _over_bound(problem, search.copied()) > problem.parts.programs_from


def _even_topics(search: Search) -> None:
    """Even topics out, and have brokers at the edges of their bands make room where that is in the
    way.
    """
    search.strict = True
    repair = TopicRepair(search)
    moved = repair.run()
    for turn in range(RELIEVED if search.flat.size > SMALL_CLUSTER else 0):
        unmet = search.unmet_topics()
        if not unmet.any() or (turn and unmet.mean() > OF_FEW):
            break
        wanted = np.where(unmet, wanted_loads(search, ROOMY), search.load)
        short = np.zeros_like(unmet)
        search.strict = False
        fill(search, wanted, shed(search, wanted, short, ONE_IN), short)
        search.strict = True
        moved |= repair.run()
    if moved:
        LocalSearch(search).run()
        undo_needless_moves(search)
        LocalSearch(search).run()


def _poor(problem: Problem) -> bool:
    """Whether a finished plan of a small cluster leaves bands unmet, or copies so much more than
    the bound of bytes that a far cheaper one is not ruled out: where topics are to be spread, the
    bound does not say.
    """
    search = Search(problem)
    if search.outside() > 0:
        return True
    return search.topic_counts is None and _over_bound(problem, search.copied()) > POOR


def _priced(problem: Problem) -> bool:
    """Whether prices can guide a plan: bytes and rate have bands; nothing leaves or is uneven."""
    high = problem.targets.high[[BYTES, RATE]][:, problem.gives]
    if problem.leaving.any() or np.isinf(high).any():
        return False
    return RackConstraint(problem.tree, problem.layout.rows).even()


def _over_bound(problem: Problem, copied: float) -> float:
    """Bytes copied over the bound of bytes alone."""
    layout = problem.layout
    before = layout.arrays.load(layout.origin, layout.size)
    bound = rebalance_bound(layout, problem.tree, problem.targets, problem.partitions, before)
    return float(copied / max(bound, 1))


def _by_prices(problem: Problem, excess: float) -> None:
    """Plan anew by prices, and keep the plan that is cheaper and as close to the bands."""
    layout = problem.layout
    found, cost = layout.rows.copy(), Search(problem).cost()
    layout.lay_out(layout.origin)
    search = round_lp(problem)
    undo_needless_moves(search)
    LocalSearch(search).run()
    TopicRepair(search).run()
    undo_needless_moves(search)
    _exchange(search)
    layout.refresh()
    if search.outside() > excess or search.cost() >= cost:
        layout.lay_out(found)


def _repair(problem: Problem, capacity: Floats) -> bool:
    """Spread the moved partitions that were uneven before; whether there were any.

    Not when only some brokers take part: the repair might need the others.
    """
    layout, tree = problem.layout, problem.tree
    if not problem.gives[tree.hosts].all():
        return False
    moved = layout.changed()
    uneven = moved[tree.violations_of(moved, layout.rows[moved]) > 0]
    placer = Placer(layout, tree, capacity)
    unlimited = layout.arrays.limits is None
    for partition in uneven.tolist():
        with nullcontext() if unlimited else suppress(InvalidRequestError):
            placer.complete(partition, int((layout.rows[partition] != NONE).sum()))
    return bool(len(uneven))
