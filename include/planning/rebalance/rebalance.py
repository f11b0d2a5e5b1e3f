"""The rebalance: what brokers hold comes within tolerance of their shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from include.domain.array_types import Floats, Mask
from include.domain.plan.infeasible import Infeasible
from include.domain.plan.move import MoveReason
from include.domain.request.param_types import TOPIC_SPREAD
from include.domain.request.request import ReassignmentRequest, spread_tolerance
from include.domain.resources import DEFAULT_TOLERANCES, LOOSE, PLACED, Resource
from include.planning.leadership.leader_balance import LedShares, balance_leaders_by_share, unmet
from include.planning.leadership.preferred_leaders import settle_leaders
from include.planning.leadership.topic_leaders import even_leaders
from include.planning.model.arrays import ClusterArrays, broker_sums
from include.planning.model.layout import Layout
from include.planning.model.load_bands import placed_targets
from include.planning.model.rack_tree import RackTree
from include.planning.model.resource_loads import capacities, known, placed_weights
from include.planning.model.scope import brokers_named, partitions_in_scope, raise_if
from include.planning.model.topic_bands import topic_bands
from include.planning.placement.movable import free_to_move
from include.planning.rebalance.band_notes import BandNotes
from include.planning.rebalance.budget_curve import budget_curve
from include.planning.rebalance.budget_cut import budget_of, keep_within_budget
from include.planning.rebalance.copy_sources import prefer_sources
from include.planning.rebalance.fixed_point import plan_on
from include.planning.rebalance.move_reasons import CopyReasons
from include.planning.rebalance.solver import rebalance
from include.planning.rebalance.target_costs import target_prices
from include.planning.result.lower_bounds import asked_bound, rebalance_bound
from include.planning.result.outcome import Outcome, left_brokers, tree_of
from include.planning.result.resource_bands import ResourceBands
from include.planning.result.topic_notes import missed_topics, topic_balance
from include.planning.search.broker_shed import REPLICAS
from include.planning.search.parts import Parts, parts_of
from include.planning.search.state import Problem


def plan_rebalance(
    arrays: ClusterArrays, request: ReassignmentRequest, parts: Parts | None = None
) -> Outcome:
    """What brokers hold comes within tolerance of their shares, with few bytes and moves.

    :param parts: of the search, those in use; None = by the effort of the request.
    """
    named = brokers_named(arrays, request) if request.brokers else arrays.brokers.live
    return _planned(arrays, request, named, parts, fill_only=False)


def plan_expansion(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The named brokers get their shares, from the fullest others; nothing else moves."""
    return _planned(arrays, request, brokers_named(arrays, request), None, fill_only=True)


def _planned(
    arrays: ClusterArrays,
    request: ReassignmentRequest,
    named: Mask,
    parts: Parts | None,
    *,
    fill_only: bool,
) -> Outcome:
    hosts = arrays.brokers.live
    raise_if([f"Broker {b} is not live." for b in arrays.brokers.ids[named & ~hosts]])
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))

    def solved(arrays: ClusterArrays) -> _Solved:
        return _Solved(arrays, request, named, movable, parts, fill_only=fill_only)

    solution = solved(arrays)
    problem, lead, capacity = solution.problem, solution.lead, solution.capacity
    layout, targets = problem.layout, problem.targets
    if problem.parts.fixed_point and not solution.cut:
        plan_on(layout, lambda then: solved(then).problem.layout, solution.finish)
    cut, needs = solution.cut, solution.needs
    tolerances = tolerances_of(request, arrays)
    bands = ResourceBands.of(targets, lead, tolerances)
    result = BandNotes(
        layout, targets, problem.weights, problem.gives, movable, cut, request.one_sided
    )
    before = layout.arrays.load(layout.home, layout.size)
    return Outcome(
        layout=layout,
        tree_before=problem.tree,
        tree_after=problem.tree,
        lower_bound_bytes=rebalance_bound(layout, problem.tree, targets, movable, before),
        asked_bound_bytes=(
            asked_bound(layout, problem.tree, targets, movable, before) if cut else None
        ),
        reason=MoveReason.BALANCE,
        why=balance_reasons(problem, needs),
        infeasible=(
            *infeasible,
            *targets.infeasible,
            *result.missed(),
            *(() if fill_only else result.shifted(tolerances)),
            *(unmet(layout, lead) if lead is not None else ()),
            *_missed_topics(problem, named, request, cut_by_budget=cut),
        ),
        topics=topic_balance(layout, problem.spread) if problem.spread is not None else None,
        bands=bands,
        prices=lambda: target_prices(problem, capacity, bands, cut_by_budget=cut),
        curve=lambda: (
            budget_curve(
                layout,
                bands,
                (named if fill_only else problem.gives) & hosts,
                solution.cut_off,
                cut=cut,
                one_sided=request.one_sided,
            )
            if request.dry_run
            else ()
        ),
    )


def _missed_topics(
    problem: Problem, named: Mask, request: ReassignmentRequest, *, cut_by_budget: bool
) -> tuple[Infeasible, ...]:
    if problem.spread is None:
        return ()
    return missed_topics(
        problem.layout,
        problem.spread,
        problem.gives & problem.tree.hosts,
        named,
        cut_by_budget=cut_by_budget,
        one_sided=request.one_sided,
    )


class _Solved:
    """What a rebalance is to solve, and the layout that solves it.

    :ivar capacity: (B,) relative size of the brokers.
    :ivar cut: whether the budget cut the plan off; ``needs``: which copies serve which target.
    """

    def __init__(
        self,
        arrays: ClusterArrays,
        request: ReassignmentRequest,
        named: Mask,
        movable: Mask,
        parts: Parts | None,
        *,
        fill_only: bool,
    ) -> None:
        hosts = arrays.brokers.live
        layout, tree = Layout(arrays), tree_of(arrays, hosts, request)
        self._request = request
        self.capacity = capacities(arrays, hosts, request.weights)
        problem = problem_of(
            layout,
            tree,
            request,
            partitions=movable,
            brokers=hosts if fill_only else named,
            capacity=self.capacity,
        )
        if parts is not None:
            problem = replace(problem, parts=parts)
        self.problem = _only_into(problem, named) if fill_only else problem
        self.lead = LedShares.of(
            layout,
            np.tile(self.capacity * hosts, (2, 1)),
            tolerances_of(request, arrays),
            request.one_sided,
        )
        rebalance(self.problem, self.capacity)
        self._searched = layout.rows.copy()
        prefer_sources(self.problem)
        self._preferred = layout.rows.copy()
        self._choose_sources()

    def finish(self) -> bool:
        """What follows the search: the budget, and leaders; whether the budget took some back."""
        problem = self.problem
        self.cut = keep_within_budget(problem, budget_of(self._request))
        self.needs = CopyReasons.of(problem)
        settle_leaders(problem.layout)
        lead_evenly(problem, self.lead)
        return self.cut

    def cut_off(self, budget_bytes: int | None) -> bool:
        """Finish the same search with this budget; whether it took some back."""
        self._request = replace(self._request, budget_bytes=budget_bytes)
        self._choose_sources()
        return self.cut

    def _choose_sources(self) -> None:
        """Finish with better sources, unless leaders are better off with the search's own layout:
        who can lead what comes before where copies are read from.
        """
        layout, lead = self.problem.layout, self.lead
        layout.lay_out(self._preferred)
        self.finish()
        beyond = lead.beyond(layout.rows[:, 0]) if lead is not None else 0.0
        if lead is None or beyond <= 0:
            return
        finished, cut, needs = layout.rows.copy(), self.cut, self.needs
        layout.lay_out(self._searched)
        self.finish()
        if lead.beyond(layout.rows[:, 0]) >= beyond:
            layout.lay_out(finished)
            self.cut, self.needs = cut, needs


def lead_evenly(problem: Problem, lead: LedShares | None) -> None:
    """Hand leadership over, in place, until brokers lead their shares, and of each topic too."""
    layout, movable, hosts, spread_bands = (
        problem.layout,
        problem.partitions,
        problem.tree.hosts,
        problem.spread,
    )
    if lead is not None:
        balance_leaders_by_share(layout, lead, movable, hosts, spread_bands)
    if spread_bands is not None:
        even_leaders(
            layout, spread_bands, movable, hosts, lead.bands() if lead is not None else None
        )


def balance_reasons(problem: Problem, needs: CopyReasons) -> Callable[[int], str]:
    """The sentence of each move of a rebalance, by dense partition index."""
    layout = problem.layout

    def why(p: int) -> str:
        if not left_brokers(layout, p):
            return _handed_over(layout, p)
        return needs.sentence(problem, p)

    return why


def _only_into(problem: Problem, named: Mask) -> Problem:
    """The same with the named brokers as the only receivers: the others may end anywhere
    between nothing and what they hold.
    """
    targets = problem.targets
    load = np.stack(
        [broker_sums(problem.layout.rows, weight, len(named)) for weight in problem.weights]
    )
    low = np.where(named, targets.low, 0.0)
    high = np.where(named, targets.high, np.maximum(targets.high, load))
    targets = replace(targets, low=low, high=high)
    spread = problem.spread
    if spread is not None:
        spread = spread.only_into(named, problem.layout.rows)
    return replace(problem, targets=targets, takes=problem.takes & named, spread=spread)


def _handed_over(layout: Layout, p: int) -> str:
    old, new = layout.arrays.brokers.ids[[layout.home[p, 0], layout.rows[p, 0]]]
    return f"Broker {new} leads in place of broker {old}, to even out leaders; nothing is copied."


def asked_tolerances(request: ReassignmentRequest) -> dict[Resource, float]:
    """The tolerance of each resource; infinite where it is free."""
    tolerances = {**DEFAULT_TOLERANCES, Resource.BYTES: request.tolerance}
    for name, value in request.tolerances.items():
        if name != TOPIC_SPREAD:
            tolerances[Resource(name)] = LOOSE if value is None else value
    return tolerances


def tolerances_of(request: ReassignmentRequest, arrays: ClusterArrays) -> dict[Resource, float]:
    """The tolerance of each resource; infinite where it is free or its load is not known."""
    return {
        resource: value if known(arrays, resource) else LOOSE
        for resource, value in asked_tolerances(request).items()
    }


def problem_of(
    layout: Layout,
    tree: RackTree,
    request: ReassignmentRequest,
    *,
    partitions: Mask,
    brokers: Mask,
    capacity: Floats,
    whole: bool = True,
) -> Problem:
    """The problem a rebalance solves.

    :param partitions: (P,) that may move.
    :param brokers: (B,) that give and take replicas; those the tree does not let host end empty.
    :param capacity: (B,) relative size of the brokers, or (K, B) per resource.
    :param whole: whether these are all of the cluster's partitions, so that topics can be spread.
    """
    arrays = layout.arrays
    weights = placed_weights(arrays)
    tolerances = tolerances_of(request, arrays)
    shape = (len(PLACED), len(tree.hosts))
    targets = placed_targets(
        layout,
        tree,
        weights=weights,
        partitions=partitions,
        brokers=brokers,
        capacity=np.broadcast_to(capacity[: len(PLACED)] if capacity.ndim > 1 else capacity, shape)
        * tree.hosts,
        tolerances=tuple(tolerances[resource] for resource in PLACED),
        one_sided=request.one_sided,
    )
    return Problem(
        layout=layout,
        tree=tree,
        targets=targets,
        weights=weights,
        partitions=partitions,
        gives=brokers,
        takes=brokers & tree.hosts & arrays.brokers.takes,
        leaving=brokers & ~tree.hosts,
        overhead_bytes=float(request.move_overhead_bytes),
        parts=parts_of(request.effort),
        spread=topic_bands(
            layout,
            tree,
            partitions=partitions,
            brokers=brokers,
            capacity=(capacity[REPLICAS] if capacity.ndim > 1 else capacity) * tree.hosts,
            tolerance=spread_tolerance(request) if whole else LOOSE,
            one_sided=request.one_sided,
        ),
    )
