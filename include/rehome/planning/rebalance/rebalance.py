"""The actions rebalance and expand: bring brokers within tolerance of their shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rehome.domain.array_types import Floats, Mask
from rehome.domain.plan.infeasible import Infeasible, Obstacle
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest, evens_topics
from rehome.domain.resources import asked_resources, led_resources
from rehome.planning.effort.optional_parts import Parts, parts_of
from rehome.planning.effort.rebalance_options import REBALANCE
from rehome.planning.effort.work import SEARCH_WORK, SearchWork, budget_of_work
from rehome.planning.leadership.copy_choice import cheapest
from rehome.planning.leadership.leader_balance import (
    LedShares,
    balance_leaders_by_share,
    change_what_still_helps,
    unmet,
)
from rehome.planning.leadership.leader_caps import keep_led_caps
from rehome.planning.leadership.min_leaders import MinLeadersRepair, RequestedMinLeaders
from rehome.planning.leadership.preferred_leaders import settle_leaders
from rehome.planning.leadership.topic_leaders import even_leaders
from rehome.planning.limits.apply_limits import without_idle_caps
from rehome.planning.limits.limit_checks import caps_too_low, set_too_small
from rehome.planning.limits.set_trees import fair_capacity
from rehome.planning.limits.undo_above_caps import undo_above_caps
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import (
    capacities,
    partition_weight,
)
from rehome.planning.model.scope import brokers_named, partitions_in_scope, raise_if
from rehome.planning.model.topic_bands import TopicBands
from rehome.planning.placement.movable import free_to_move, notes_of
from rehome.planning.rebalance.band_notes import BandNotes
from rehome.planning.rebalance.budget_curve import budget_curve
from rehome.planning.rebalance.budget_cut import budget_of, keep_within_budget
from rehome.planning.rebalance.copy_sources import prefer_sources
from rehome.planning.rebalance.fixed_point import plan_on
from rehome.planning.rebalance.move_reasons import balance_causes
from rehome.planning.rebalance.problem import only_into, placed_capacity, problem_of, tolerances_of
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.rebalance.target_costs import target_prices
from rehome.planning.result.lower_bounds import asked_bound, rebalance_bound
from rehome.planning.result.moves_bound import moves_bound
from rehome.planning.result.outcome import Outcome, tree_of
from rehome.planning.result.resource_bands import ResourceBands
from rehome.planning.result.topic_notes import missed_topics, topic_balance
from rehome.planning.search.state import Problem


def plan_rebalance(
    arrays: ClusterArrays, request: ReassignmentRequest, parts: Parts | None = None
) -> Outcome:
    """Bring brokers within tolerance of their shares, with few bytes and moves.

    :param parts: optional parts of the search; None = by the effort of the request.
    """
    request_brokers = brokers_named(arrays, request) if request.brokers else arrays.brokers.live
    return _plan(arrays, request, request_brokers, parts, fill_only=False)


def plan_expansion(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Fill the named brokers up to their shares; the fullest others give, down to their shares at
    most. Nothing else moves.
    """
    return _plan(arrays, request, brokers_named(arrays, request), None, fill_only=True)


def _plan(
    arrays: ClusterArrays,
    request: ReassignmentRequest,
    request_brokers: Mask,
    parts: Parts | None,
    *,
    fill_only: bool,
) -> Outcome:
    arrays, hosts = without_idle_caps(arrays), arrays.brokers.live
    raise_if([f"Broker {b} is not live." for b in arrays.brokers.ids[request_brokers & ~hosts]])
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    small = movable & set_too_small(arrays, hosts, arrays.replication_factor)
    infeasible += caps_too_low(arrays, hosts, arrays.replication_factor)
    infeasible += notes_of(arrays, np.flatnonzero(small), Obstacle.SET_TOO_SMALL)
    movable &= ~small

    parts = parts or parts_of(request.effort)
    work = SearchWork(budget_of_work(arrays.rows.size, int(hosts.sum()), parts.work))

    def solve(arrays: ClusterArrays) -> _Solved:
        return _Solved(arrays, request, request_brokers, movable, parts, work, fill_only=fill_only)

    with work.at_most(REBALANCE.first_plan):
        solution = solve(arrays)
    problem, lead, capacity = solution.problem, solution.lead, solution.capacity
    layout, targets, minimums = problem.layout, problem.targets, solution.minimums
    if problem.parts.fixed_point and not solution.cut:
        plan_on(layout, lambda then: solve(then).problem.layout, solution.finish, work)
    solution.even_what_is_left()
    cut, copied = solution.cut, solution.copied
    tolerances = tolerances_of(request, arrays)
    bands = ResourceBands.of(targets, lead, tolerances, asked_resources(request.tolerances))
    result = BandNotes(
        layout, targets, problem.weights, problem.gives, movable, cut, request.one_sided
    )
    before = layout.arrays.load(layout.origin, layout.size)
    return Outcome(
        layout=layout,
        tree_before=problem.tree,
        tree_after=problem.tree,
        lower_bound_bytes=rebalance_bound(layout, problem.tree, targets, movable, before),
        asked_bound_bytes=(
            asked_bound(layout, problem.tree, targets, movable, before) if cut else None
        ),
        reason=MoveReason.BALANCE,
        causes=balance_causes(problem, copied),
        infeasible=(
            *infeasible,
            *result.limits_and_misses(),
            *result.shifted_notes(
                tolerances, problem.gives & ~request_brokers if fill_only else None
            ),
            *(unmet(layout, lead, handed_over=minimums is not None) if lead is not None else ()),
            *(minimums.infeasible(arrays) if minimums else ()),
            *(minimums.missed_notes(layout, problem.takes, cut_by_budget=cut) if minimums else ()),
            *_missed_topics(problem, request_brokers, request, cut_by_budget=cut),
        ),
        topics=topic_balance(layout, problem.spread) if problem.spread is not None else None,
        min_leaders=minimums.figures(layout, solution.copied) if minimums else None,
        bands=bands,
        search_cut=work.cut,
        lower_bound_moves=None if cut else moves_bound(problem),
        prices=lambda: target_prices(
            problem, capacity, bands, cut_by_budget=cut, least_led=solution.price_of_minimums()
        ),
        curve=lambda: (
            budget_curve(
                layout,
                bands,
                (request_brokers if fill_only else problem.gives) & hosts,
                solution.cut_off,
                cut=cut,
                one_sided=request.one_sided,
            )
            if request.dry_run
            else ()
        ),
    )


def _missed_topics(
    problem: Problem, request_brokers: Mask, request: ReassignmentRequest, *, cut_by_budget: bool
) -> tuple[Infeasible, ...]:
    if problem.spread is None:
        return ()
    return missed_topics(
        problem.layout,
        problem.spread,
        problem.gives & problem.tree.hosts,
        request_brokers & evens_topics(request),
        cut_by_budget=cut_by_budget,
        one_sided=request.one_sided,
    )


class _Solved:
    """A rebalance problem and the layout that solves it.

    :ivar capacity: (B,) relative size of the brokers.
    :ivar cut: whether the budget took moves back.
    """

    def __init__(
        self,
        arrays: ClusterArrays,
        request: ReassignmentRequest,
        request_brokers: Mask,
        movable: Mask,
        parts: Parts,
        work: SearchWork,
        *,
        fill_only: bool,
    ) -> None:
        hosts = arrays.brokers.live
        layout, tree = Layout(arrays), tree_of(arrays, hosts, request)
        self._request, self._receivers = request, request_brokers & evens_topics(request)
        self.capacity = capacities(arrays, hosts, request.weights)
        problem = problem_of(
            layout,
            tree,
            request,
            partitions=movable,
            brokers=hosts if fill_only else request_brokers,
            capacity=self.capacity,
            fair=placed_capacity(arrays, tree, self.capacity, request),
        )
        problem = replace(problem, parts=parts, work=work)
        self.problem = only_into(problem, request_brokers, request) if fill_only else problem
        self.lead = LedShares.of(
            layout,
            led_capacity(arrays, tree, self.capacity * hosts, request),
            tolerances_of(request, arrays),
            request.one_sided,
        )
        self.minimums = RequestedMinLeaders.of(arrays, request, request_brokers & hosts)
        self.copied: dict[int, int] = {}
        rebalance(self.problem, self.capacity)
        self._searched = layout.rows.copy()
        prefer_sources(self.problem)
        self._preferred = layout.rows.copy()
        self._choose_sources()

    def finish(self, than: float = np.inf) -> bool:
        """The steps after the search: budget and leaders. Returns whether the budget took moves
        back.

        :param than: how far leaders are off their shares with another layout.
        """
        problem = self.problem
        self.cut = keep_within_budget(problem, budget_of(self._request))
        settle_leaders(problem.layout)
        lead_evenly(problem, self.lead, than)
        self._off = _off_share(problem.layout, self.lead)
        self._keep_minimums()
        self._keep_caps()
        self._change_what_still_helps(self.lead, problem.spread, evens_topics=False)
        self.copied = {
            p: broker
            for p, broker in self.copied.items()
            if broker in problem.layout.rows[p] and broker not in problem.layout.origin[p]
        }
        return self.cut

    def even_what_is_left(self) -> None:
        """Change leaders one by one in the end, as long as that brings brokers or topics closer."""
        problem, lead = self.problem, self.lead
        layout, spread = problem.layout, problem.spread
        if spread is not None:
            spread = spread.with_led_before(layout.origin, self._receivers)
            lead = lead or _no_shares(layout)
        self._change_what_still_helps(lead, spread, evens_topics=True)

    def _change_what_still_helps(
        self, lead: LedShares | None, spread: TopicBands | None, *, evens_topics: bool
    ) -> None:
        problem = self.problem
        if lead is not None:
            change_what_still_helps(
                problem.layout,
                lead,
                problem.partitions,
                problem.tree.hosts,
                spread,
                self.minimums,
                evens_topics=evens_topics,
            )

    def _keep_minimums(self) -> None:
        """Change leaders for min_leaders, and copy replicas where that does not suffice."""
        if self.minimums is None or not self.minimums.lacking(self.problem.layout.rows).any():
            return
        problem, layout = self.problem, self.problem.layout
        copies = is_new(layout.rows, layout.origin).sum(axis=1)
        spent = np.array([(copies * layout.size).sum(), copies.sum()], float)
        choose = cheapest(
            layout,
            problem.tree.unevenness_of,
            problem.takes,
            problem.gives,
            problem.weights,
            (problem.targets.low, problem.targets.high),
            budget_of(self._request) - spent,
        )
        repair = MinLeadersRepair(layout, self.minimums, problem.partitions, choose)
        repair.run()
        self.copied |= repair.copied
        layout.refresh()

    def _keep_caps(self) -> None:
        """Bring brokers within their caps. What that undoes may take leaders that min_leaders asks
        for: others are led instead, without copies.
        """
        layout, movable, minimums = self.problem.layout, self.problem.partitions, self.minimums
        keep_led_caps(layout, movable, lower=True, minimums=minimums)
        if minimums is None:
            undo_above_caps(layout)
            return
        lacked = minimums.lacking(layout.rows).sum()
        undo_above_caps(layout)
        if minimums.lacking(layout.rows).sum() > lacked:
            MinLeadersRepair(layout, minimums, movable).run()
            layout.refresh()
            keep_led_caps(layout, movable, lower=True, minimums=minimums)
            undo_above_caps(layout)

    def price_of_minimums(self) -> tuple[int, int] | None:
        """Bytes and replicas that are copied for min_leaders alone; None if it is not requested."""
        if self.minimums is None:
            return None
        return int(self.problem.layout.size[list(self.copied)].sum()), len(self.copied)

    def cut_off(self, budget_bytes: int | None) -> bool:
        """Finish the same search with this budget. Returns whether it took moves back."""
        self._request = replace(self._request, budget_bytes=budget_bytes)
        self._choose_sources()
        self.even_what_is_left()
        return self.cut

    def _choose_sources(self) -> None:
        """Improve the sources of copies, and finish; unless leaders would be balanced worse: leader
        balance has priority over where copies are read from.
        """
        layout, lead = self.problem.layout, self.lead
        layout.lay_out(self._preferred)
        self.copied = {}
        self.finish()
        beyond = _off_share(layout, lead)
        if lead is None or beyond <= 0:
            return
        if lead.weights[2:].any() and len(layout.rows) > REBALANCE.leaders_retried_up_to:
            return
        finished, cut = layout.rows.copy(), self.cut
        copied, self.copied = self.copied, {}
        layout.lay_out(self._searched)
        self.finish(than=self._off)
        if _off_share(layout, lead) >= beyond:
            layout.lay_out(finished)
            self.cut, self.copied = cut, copied


def _no_shares(layout: Layout) -> LedShares:
    """Shares of nothing, which every load meets."""
    partitions, brokers = len(layout.rows), len(layout.arrays.brokers.ids)
    return LedShares(np.zeros((1, partitions)), np.zeros((1, brokers)), np.ones(1))


def led_capacity(
    arrays: ClusterArrays, tree: RackTree, capacity: Floats, request: ReassignmentRequest
) -> Floats:
    """(L, B) capacity by which shares of leaders, bytes out and bytes in are computed."""
    weights = (partition_weight(arrays, resource) for resource in led_resources(request.tolerances))
    return np.stack([fair_capacity(arrays, tree, capacity, weight) for weight in weights])


def _off_share(layout: Layout, lead: LedShares | None) -> float:
    """How far leaders are off their shares beyond the tolerance, in shares."""
    return lead.beyond(lead.load(layout.rows[:, 0])) if lead is not None else 0.0


def lead_evenly(problem: Problem, lead: LedShares | None, than: float = np.inf) -> None:
    """Balance leaders, in place: by share of brokers, and of each topic.

    :param than: how far leaders are off their shares with another layout.
    """
    layout, movable, hosts, spread_bands = (
        problem.layout,
        problem.partitions,
        problem.tree.hosts,
        problem.spread,
    )
    if lead is not None:
        scorings = balance_leaders_by_share(layout, lead, movable, hosts, spread_bands, than)
        problem.work.count_beside(SEARCH_WORK.per_led * scorings)
    if spread_bands is not None:
        even_leaders(
            layout, spread_bands, movable, hosts, lead.bands() if lead is not None else None
        )
