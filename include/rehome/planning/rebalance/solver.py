"""The rebalance search: bring every broker into its bands, with few bytes and few moves.

1. *shed and fill*: brokers give up replicas above a level chosen per domain, largest first; each
   goes to the valid broker with the largest deficit;
2. *programs*: if that copies far more than the lower bound, because resources conflict, linear
   programs make another start, and the one that promises a cheaper plan is kept;
3. *local search*: for the broker furthest outside its bands, make the trades that remove the most
   excess per byte copied: push a replica away, pull one in, or swap two;
4. *undo*: moves that no band needs are undone;
5. *racks*: partitions that have moved and were unevenly spread are made even, and the search
   continues; large clusters, where topics have bands, begin with moves that make partitions even
   instead, see ``uneven_first``;
6. *neighbourhoods*: a small cluster's plan, or one that leaves bands unmet, is improved by large
   neighbourhood search over three brokers;
7. *moves*: an integer program makes the moves of a small cluster's plan fewer, for 1 % more bytes.

Programs are imported where they are used: SciPy takes a quarter of a second, and plans of large
clusters hardly ever need it.

The search ends when no trade helps. If all brokers are in their bands, planning again on the result
changes nothing; for small clusters where some are not, see ``fixed_point``.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from operator import itemgetter

import numpy as np

from rehome.domain.array_types import NONE, Floats, Rows
from rehome.errors import InvalidRequestError
from rehome.planning.effort.rebalance_options import REBALANCE
from rehome.planning.effort.shed_options import SHED, Inner
from rehome.planning.placement.replica_sets import Placer
from rehome.planning.rebalance.problem import inside_sets
from rehome.planning.rebalance.reconsider import (
    RECONSIDER,
    best_of,
    improve,
    with_price,
)
from rehome.planning.rebalance.uneven_first import keeps_off_bands, make_even_first
from rehome.planning.result.lower_bounds import rebalance_bound
from rehome.planning.search.broker_shed import BYTES_ROW, RATE_ROW
from rehome.planning.search.cheaper_copies import exchange_copies
from rehome.planning.search.fewer_copies import exchange_and_merge
from rehome.planning.search.fill import fill
from rehome.planning.search.local_search import LocalSearch
from rehome.planning.search.shed import narrow, shed, wanted_loads
from rehome.planning.search.state import LEAST_CHANGE, Problem, Search
from rehome.planning.search.topic_repair import TopicRepair
from rehome.planning.search.undo_moves import undo_needless_moves, undo_whole_partitions


def rebalance(problem: Problem, capacity: Floats, *, part_of_a_cluster: bool = False) -> None:
    """Rebalance the problem's layout in place.

    A small cluster is rebalanced in several ways, and the best one is kept.

    :param capacity: (B,) relative size of the brokers, for repairs of racks.
    :param part_of_a_cluster: one of many problems: a small one gets less time.
    """
    layout, start = problem.layout, problem.layout.origin
    if layout.arrays.limits is not None and layout.arrays.limits.has_sets:
        problem, start = inside_sets(problem, capacity)
    search = Search(problem)
    before = search.outside()
    if before <= 0:
        return
    if layout.rows.size <= REBALANCE.small and layout.arrays.limits is None:
        _by_prices(problem, capacity, before, part=part_of_a_cluster)
        return
    if _search(search, capacity, SHED.inner) > before - LEAST_CHANGE:
        layout.lay_out(start)
    if layout.arrays.limits is None and layout.rows.size <= REBALANCE.middle:
        search = Search(problem)
        exchange_and_merge(search, RECONSIDER.more_bytes * search.copied_bytes())
        undo_needless_moves(search)
        undo_whole_partitions(search)
        layout.refresh()


def _by_prices(problem: Problem, capacity: Floats, before: float, *, part: bool) -> None:
    """Rebalance a small cluster once per price of a move, and keep the best layout: closest to the
    bands, then with few bytes, then with few moves.
    """
    layout, layouts = problem.layout, []
    for number, price in enumerate(RECONSIDER.move_prices[:1] if part else RECONSIDER.move_prices):
        layout.lay_out(layout.origin)
        with problem.work.at_most(1.0 if part else 1 / (len(RECONSIDER.move_prices) - number)):
            _small(with_price(problem, price), capacity, before, part=part)
        layouts.append(_way(problem))
    layout.lay_out(best_of(layouts, layout.origin))
    may_be_poor = problem.parts.neighbourhoods and layout.rows.size >= REBALANCE.unmet_from
    if may_be_poor and not part and _poor(problem):
        from rehome.planning.programs.neighbourhood_mip import search_neighbourhoods

        search_neighbourhoods(problem)
        undo_needless_moves(Search(problem))
        layout.refresh()
    if problem.parts.fewest_moves and not part:
        _move_fewest(problem)


def _move_fewest(problem: Problem) -> None:
    """Move fewer replicas of a small cluster, then copy fewer bytes with as many moves."""
    from rehome.planning.programs.fewest_moves import move_fewest

    copied = Search(problem).copied_bytes()
    over_bound = _over_bound(problem, copied)
    move_fewest(
        problem,
        copied
        * max(REBALANCE.for_fewer_moves, REBALANCE.for_fewer_over_bound / max(over_bound, 1.0)),
    )
    search = Search(problem)
    exchange_and_merge(search, search.copied_bytes())
    undo_needless_moves(search)
    problem.layout.refresh()


def _small(problem: Problem, capacity: Floats, before: float, *, part: bool) -> None:
    """Rebalance a small cluster in several ways, and keep the best one."""
    layout, start = problem.layout, problem.layout.origin
    with problem.work.at_most(REBALANCE.part_of_work):
        after = _search(Search(problem), capacity, SHED.inner)
    if after > before - LEAST_CHANGE:
        layout.lay_out(start)
    may_be_unmet = REBALANCE.unmet_from <= layout.rows.size <= REBALANCE.unmet_up_to and not part
    if after <= 0 or may_be_unmet:
        _multi_start(problem, capacity, before, few=part)


def _multi_start(problem: Problem, capacity: Floats, before: float, *, few: bool) -> None:
    """Multi-start: search from other starts, reconsider each result, and keep the layout that is
    closest to the bands; of equals, the cheapest.

    :param before: excess at the beginning. Another layout is accepted if its excess is lower; if
        the first one meets all bands, others must as well.
    :param few: reconsider only the cheapest result.
    """
    layout, parts = problem.layout, problem.parts
    reconsidered = min(parts.reconsidered, 1) if few else parts.reconsidered
    ways = [(Search(problem).objective(), layout.rows.copy())]
    most = 0.0 if ways[0][0][0] <= 0 else before - LEAST_CHANGE
    for inner in REBALANCE.other_inner[: parts.other_starts]:
        if problem.work.is_spent():
            break
        layout.lay_out(layout.origin)
        search = Search(problem)
        with problem.work.at_most(REBALANCE.part_of_work):
            after = _search(search, capacity, inner)
        if after <= most and not any((layout.rows == rows).all() for _, rows in ways):
            ways.append((search.objective(), layout.rows.copy()))
    ways.sort(key=itemgetter(0))
    layouts: list[tuple[tuple[float, float], Rows]] = []
    for _, rows in ways[:reconsidered]:
        if layouts and all(excess > 0 for (excess, _), _ in layouts):
            break  # if no plan can meet the bands, each takes several times as long
        layout.lay_out(rows)
        layouts.append((improve(Search(problem), _exchange), layout.rows.copy()))
    layout.lay_out(min(layouts or ways, key=itemgetter(0))[1])


def _search(search: Search, capacity: Floats, inner: Inner) -> float:
    """Run the phases. Returns the excess that is left."""
    problem, layout = search.problem, search.problem.layout
    if search.topic_counts is None or layout.rows.size <= REBALANCE.middle:
        return _rounds(search, capacity, inner)
    before = layout.rows.copy()
    even = make_even_first(search, REBALANCE.with_topics)
    if even is None:
        return _rounds(search, capacity, REBALANCE.with_topics)
    _finish(_at(layout.rows, even))
    ways = [_way(problem)]
    if ways[0][0] > 0 and keeps_off_bands(problem, even):
        layout.lay_out(before)
        _rounds(Search(problem), capacity, REBALANCE.with_topics)
        ways.append(_way(problem))
        layout.lay_out(best_of(ways, layout.origin))
    return min(excess for excess, _, _ in ways)


def _rounds(search: Search, capacity: Floats, inner: Inner) -> float:
    """Search and repair racks in turn. Returns the excess that is left."""
    problem = search.problem
    for number in range(REBALANCE.search_rounds):
        search.strict = _keeps_topics(problem)
        wanted_load = wanted_loads(search, inner)
        short = narrow(search, wanted_load)
        fill(search, wanted_load, shed(search, wanted_load, short), short)
        if number == 0 and _programs_apply(problem):
            search = _best_finished(search) if problem.parts.both_starts else _best_start(search)
        else:
            _finish(search)
        if search.racks.even() or not _repair(problem, capacity):
            break
        search = Search(problem)
    return search.outside()


def _way(problem: Problem) -> tuple[float, float, Rows]:
    """The layout as it is, for :func:`best_of`."""
    search = Search(problem)
    return search.objective()[0], search.copied_bytes(), search.rows.copy()


def _finish(search: Search) -> None:
    """The phases after the start of a local search."""
    problem = search.problem
    with problem.work.at_most(REBALANCE.part_of_work):
        LocalSearch(search).run()
    if search.topic_counts is None or search.flat.size <= REBALANCE.large:
        undo_needless_moves(search)
        with problem.work.at_most(REBALANCE.part_of_work):
            LocalSearch(search).run()
    _exchange(search)
    _even_topics(search)
    problem.layout.refresh()


def _best_start(search: Search) -> Search:
    """Finish what filling has made, or a plan by linear programs if that promises to be cheaper."""
    problem, layout = search.problem, search.problem.layout
    layout.refresh()
    rows, cost, removal = layout.rows.copy(), search.cost(), _removal_cost(search)
    if _over_bound(problem, search.copied_bytes() + removal) > problem.parts.programs_from:
        rounded = _round_programs(problem, (cost, cost + removal))
        if rounded is not None and rounded.cost() + _removal_cost(rounded) < cost + removal:
            _finish(rounded)
            return rounded
        search = _at(rows, problem)
    _finish(search)
    return search


def _best_finished(search: Search) -> Search:
    """Finish what filling has made and, if that copies far more than the lower bound, a plan by
    linear programs, too; keep the better one.
    """
    problem = search.problem
    _finish(search)
    if _over_bound(problem, search.copied_bytes()) <= problem.parts.programs_from:
        return search
    rows, excess, cost = search.rows.copy(), search.outside(), search.cost()
    rounded = _round_programs(problem)
    if rounded is not None:
        _finish(rounded)
        if rounded.outside() <= excess and rounded.cost() < cost:
            return rounded
    return _at(rows, problem)


def _removal_cost(search: Search) -> float:
    """About what it costs to remove the excess of a plan, in bytes. Topics cost hardly any: small
    replicas even them out.
    """
    of_loads = search.outside() - search.unit * search.uneven()
    return float(REBALANCE.excess_price * search.share[BYTES_ROW].mean() * of_loads)


def _round_programs(
    problem: Problem, costs: tuple[float, float] = (np.inf, np.inf)
) -> Search | None:
    """A plan by linear programs, made anew; None if they do not apply, promise hardly less, or
    would leave too little of the budget for the local search.

    :param costs: of another plan in bytes, as it is and with its excess removed.
    """
    from rehome.planning.programs.lp_rounding import PricedSearch, is_free, round_lp

    problem.layout.lay_out(problem.layout.origin)
    rounded = PricedSearch(problem)
    rounded.strict = _keeps_topics(problem)
    with problem.work.at_most(REBALANCE.programs_part):
        if not is_free(rounded) or not round_lp(rounded, costs):
            return None
    undo_needless_moves(rounded)
    return rounded


def _at(rows: Rows, problem: Problem) -> Search:
    """A search that goes on at these rows."""
    problem.layout.lay_out(rows)
    search = Search(problem)
    search.strict = _keeps_topics(problem)
    return search


def _keeps_topics(problem: Problem) -> bool:
    """Whether topics are kept to at every step, and not repaired at the end."""
    return problem.layout.rows.size <= REBALANCE.middle


def _exchange(search: Search) -> None:
    """Replace the largest copies by smaller ones."""
    replicas = search.flat.size
    most = REBALANCE.exchanged_up_to if search.topic_counts is None else REBALANCE.large
    if search.problem.parts.exchange and replicas <= most:
        with search.work.at_most(REBALANCE.part_of_work):
            exchange_copies(
                search, max(REBALANCE.exchanged, replicas // REBALANCE.replicas_per_exchange)
            )
        undo_needless_moves(search)


def _even_topics(search: Search) -> None:
    """Repair topics. If brokers at the edges of their bands block that, reduce their load first."""
    search.strict = True
    repair = TopicRepair(search)
    moved = repair.run()
    for turn in range(REBALANCE.most_reliefs if search.flat.size > REBALANCE.small else 0):
        unmet = search.unmet_topics()
        if not unmet.any() or (turn and unmet.mean() > REBALANCE.relieved_brokers):
            break
        if search.work.is_used_up():
            break
        wanted_load = np.where(unmet, wanted_loads(search, REBALANCE.relieved_inner), search.load)
        short = np.zeros_like(unmet)
        search.strict = False
        fill(search, wanted_load, shed(search, wanted_load, short, REBALANCE.every_nth), short)
        search.strict = True
        moved |= repair.run()
    if moved:
        LocalSearch(search).run()
        undo_needless_moves(search)
        if search.flat.size > REBALANCE.middle:
            repair.run()  # what was undone has made room
        LocalSearch(search).run()
        _exchange(search)


def _poor(problem: Problem) -> bool:
    """Whether a small cluster's plan leaves bands unmet, or copies so much more than the lower
    bound that a far cheaper one may exist. If topics have bands the bound proves nothing, so only
    unmet bands count.
    """
    search = Search(problem)
    if search.outside() > 0:
        return True
    return (
        search.topic_counts is None and _over_bound(problem, search.copied_bytes()) > REBALANCE.poor
    )


def _programs_apply(problem: Problem) -> bool:
    """Whether linear programs apply: only bytes, replicas and rate may take part, and bytes and
    rate have bands; no broker has to be emptied. If topics have bands, the cluster is not too large
    for that, see Parts.

    With further resources (potential bytes out), the lower bound of bytes does not say whether
    programs might help; and in the cases of ``make bench-limits`` no plan of theirs was kept.
    """
    size = problem.layout.rows.size
    if problem.layout.arrays.limits is not None or problem.further:
        return False
    if not REBALANCE.small < size <= REBALANCE.priced_up_to:
        return False
    if problem.spread is not None and size > REBALANCE.large and not problem.parts.large_programs:
        return False
    high = problem.targets.high[[BYTES_ROW, RATE_ROW]][:, problem.gives]
    return not problem.leaving.any() and not np.isinf(high).any()


def _over_bound(problem: Problem, copied: float) -> float:
    """Bytes copied / lower bound of bytes alone."""
    layout = problem.layout
    before = layout.arrays.load(layout.origin, layout.size)
    bound = rebalance_bound(layout, problem.tree, problem.targets, problem.partitions, before)
    return float(copied / max(bound, 1))


def _repair(problem: Problem, capacity: Floats) -> bool:
    """Make moved partitions even that were uneven before, if all brokers take part: the repair
    might need any of them. Returns whether there were any.
    """
    layout, tree = problem.layout, problem.tree
    if not problem.gives[tree.hosts].all():
        return False
    moved = layout.changed_partitions()
    uneven = moved[tree.violations_of(moved, layout.rows[moved]) > 0]
    placer = Placer(layout, tree, capacity)
    for partition in uneven.tolist():
        _complete_if_more_even(problem, placer, partition)
    return bool(len(uneven))


def _complete_if_more_even(problem: Problem, placer: Placer, partition: int) -> None:
    """Complete a partition; it stays as it is where that spreads it no more evenly."""
    layout, before = problem.layout, problem.layout.rows[partition].copy()
    unlimited = layout.arrays.limits is None
    with nullcontext() if unlimited else suppress(InvalidRequestError):
        placer.complete(partition, int((before != NONE).sum()))
    rows = np.stack([before, layout.rows[partition]])
    if (rows[0] == rows[1]).all():
        return
    was, now = problem.tree.unevenness_of(np.repeat(partition, 2), rows).tolist()
    if now >= was:
        placer.put_back(partition, before)
