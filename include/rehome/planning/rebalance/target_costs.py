"""Price of each target of a rebalance: bytes and moves saved by leaving it out.

For small and middle clusters, the request is planned again without the target, as far as the budget
of work lasts. Otherwise the target is dropped from the finished plan, and moves that only it needed
are undone. This is a lower bound of the price, because a new plan could save more. Leader changes
copy nothing, so targets on leaders are free.
"""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

import numpy as np

from rehome.domain.array_types import Floats
from rehome.domain.plan.figures import TargetPrice
from rehome.domain.request.param_types import MIN_LEADERS, TOPIC_SPREAD
from rehome.domain.resources import LED, PLACED, Resource
from rehome.planning.effort.work import SearchWork
from rehome.planning.model.arrays import is_new
from rehome.planning.model.layout import Layout
from rehome.planning.rebalance.copy_sources import prefer_sources
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.resource_bands import ResourceBands
from rehome.planning.search.state import Problem, Search
from rehome.planning.search.undo_moves import undo_needless_moves, undo_whole_partitions

SOLVED_ANEW = 200_000
"""Size, in replicas, up to which a request is planned again without each target."""

PRICES = 0.3
"""The work that prices may take together, as a part of the budget of the plan's search."""

PER_TARGET = 0.5
"""The part of what is left of it that one target may take."""


def target_prices(
    problem: Problem,
    capacity: Floats,
    bands: ResourceBands,
    *,
    cut_by_budget: bool,
    least_led: tuple[int, int] | None = None,
) -> tuple[TargetPrice, ...]:
    """The price of every target of a rebalance that is finished.

    :param capacity: (B,) relative size of the brokers, as for
        :func:`~rehome.planning.rebalance.rebalance.rebalance`.
    :param cut_by_budget: a budget has cut the plan; prices are lower bounds for the part that is
        left.
    :param least_led: bytes and replicas copied for min_leaders alone; None if it is not requested.
    """
    again = problem.layout.rows.size <= SOLVED_ANEW and not cut_by_budget
    problem = replace(problem, work=SearchWork(PRICES * problem.work.budget if again else 0.0))
    prices = []
    for resource in PLACED:
        if resource in bands.tolerance:
            free = _without(problem, resource)
            saved, how = _saving_and_how(problem, free, capacity, besides=least_led)
            prices.append(TargetPrice(resource.value, *saved, how))
    if problem.spread is not None:
        prices.append(_price_of_spread(problem, capacity, besides=least_led))
    if least_led is not None:
        prices.append(TargetPrice(MIN_LEADERS, *least_led, "solved" if again else "at_least"))
    free_ones = (TargetPrice(r.value, 0, 0, "free") for r in LED if r in bands.tolerance)
    return (*prices, *free_ones)


def _price_of_spread(
    problem: Problem, capacity: Floats, *, besides: tuple[int, int] | None
) -> TargetPrice:
    """What is saved if topics may be spread in any way."""
    if problem.spread is not None and problem.spread.leaders_only:
        return TargetPrice(TOPIC_SPREAD, 0, 0, "free")
    layout = Layout(problem.layout.arrays, problem.layout.rows.shape[1])
    free = replace(problem, layout=layout, spread=None)
    saved, how = _saving_and_how(problem, free, capacity, besides=besides)
    return TargetPrice(TOPIC_SPREAD, *saved, how)


def _saving_and_how(
    problem: Problem,
    free: Problem,
    capacity: Floats,
    *,
    besides: tuple[int, int] | None,
) -> tuple[tuple[int, int], str]:
    """Bytes and replicas that are not copied without a target, and how that was found.

    :param besides: copies that do not depend on the target, if the request is planned again.
    """
    work, apart, savings = problem.work, besides or (0, 0), []
    if not work.is_spent():
        with work.at_most(PER_TARGET):
            rebalance(free, capacity)
            prefer_sources(free)
            cut = work.is_spent()
        savings.append((_saving(problem, free, apart), "solved"))
        if not cut:
            return savings[0]
    _take_back(free, problem.layout)
    savings.append((_saving(problem, free, (0, 0)), "at_least"))
    return max(savings, key=itemgetter(0))


def _saving(problem: Problem, free: Problem, apart: tuple[int, int]) -> tuple[int, int]:
    with_it, without = _cost(problem.layout), _cost(free.layout)
    return with_it[0] - without[0] - apart[0], with_it[1] - without[1] - apart[1]


def _without(problem: Problem, resource: Resource) -> Problem:
    """The unsolved problem without the band of one resource."""
    k, targets = PLACED.index(resource), problem.targets
    low, high = targets.low.copy(), targets.high.copy()
    low[k], high[k] = 0.0, np.inf
    width = problem.layout.rows.shape[1]
    return replace(
        problem,
        layout=Layout(problem.layout.arrays, width),
        targets=replace(targets, low=low, high=high),
    )


def _take_back(free: Problem, finished: Layout) -> None:
    free.layout.rows[:] = finished.rows
    free.layout.refresh()
    search = Search(free)
    undo_needless_moves(search)
    undo_whole_partitions(search)
    free.layout.refresh()


def _cost(layout: Layout) -> tuple[int, int]:
    """Bytes and replicas that a layout copies."""
    return int(layout.incoming.sum()), int(is_new(layout.rows, layout.origin).sum())
