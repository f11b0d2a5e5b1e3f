"""The work of one slice in the rounds of a rebalance or an expansion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import UNLIMITED, Floats, Ints, Rows
from rehome.domain.plan.infeasible import Infeasible
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import Action
from rehome.domain.resources import Resource, asked, led
from rehome.errors import InvalidRequestError
from rehome.planning.leadership.leader_balance import LedShares, balance_leaders_by_share
from rehome.planning.leadership.preferred_leaders import settle_leaders
from rehome.planning.model.arrays import broker_sums
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities, known_resources, partition_weight
from rehome.planning.model.scope import (
    brokers_named,
    partitions_in_scope,
    raise_if,
)
from rehome.planning.placement.movable import free_to_move
from rehome.planning.placement.rack_constraint import RackConstraint
from rehome.planning.rebalance.budget_cut import keep_within_budget
from rehome.planning.rebalance.copy_sources import prefer_sources
from rehome.planning.rebalance.move_reasons import CopyReasons
from rehome.planning.rebalance.problem import problem_of
from rehome.planning.rebalance.rebalance import balance_reasons
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.outcome import Outcome, tree_of
from rehome.planning.result.resource_bands import ResourceBands
from rehome.planning.search.state import Search
from rehome.planning.slices.slices import Context, Report


@dataclass(frozen=True)
class SliceMoves:
    """The changed rows of a slice: dense partition indexes, and rows."""

    partitions: Ints
    rows: Rows

    @classmethod
    def of(cls, layout: Layout) -> SliceMoves:
        """The changes of a layout so far."""
        changed = layout.changed()
        return cls(changed, layout.rows[changed].copy())


@dataclass(frozen=True)
class SliceLoads:
    """Sums over the partitions of a slice, which add up to those of the cluster.

    :param load: (K, B) loads in resources.PLACED; ``led``: (L, B) loads in resources.LED.
    :param packed: (B, V) bytes that the plan copies to each volume so far.
    """

    load: Floats
    led: Floats
    packed: Ints

    def __add__(self, other: SliceLoads) -> SliceLoads:
        return SliceLoads(self.load + other.load, self.led + other.led, self.packed + other.packed)


@dataclass(frozen=True)
class Survey:
    """Facts about a slice before anything moves.

    :param share, fair: (K, B) of the slice by itself, see LoadBands; so is ``domain``.
    :param total_led: (L,) total of each of resources.LED.
    :param known: resources whose load the snapshot has.
    :param even: whether all partitions that may move are evenly spread.
    """

    held: SliceLoads
    share: Floats
    fair: Floats
    domain: Ints
    total_led: Floats
    known: frozenset[Resource]
    even: bool
    infeasible: tuple[Infeasible, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Goal:
    """Present loads and bands of the cluster; (K, B) bands as in LoadBands.

    :param led_share: (L, B) leader shares; ``led_tolerance``: (L,), infinite = no limit.
    :param headrooms: (B, V) bytes that the whole plan may add to each volume.
    """

    held: SliceLoads
    share: Floats
    low: Floats
    high: Floats
    domain: Ints
    led_share: Floats
    led_tolerance: Floats
    headrooms: Ints


class Part:
    """A slice while its cluster is balanced."""

    def __init__(
        self, context: Context, replicas: pa.Table, moved: SliceMoves | None = None
    ) -> None:
        request, arrays = context.request, context.arrays(replicas)
        self.request, self.arrays, self.pace = request, arrays, context.pace
        hosts = arrays.brokers.live
        named = brokers_named(arrays, request) if request.brokers else hosts
        raise_if([f"Broker {b} is not live." for b in arrays.brokers.ids[named & ~hosts]])
        self.movable, self.notes = free_to_move(arrays, partitions_in_scope(arrays, request))
        self.layout, self.tree = Layout(arrays), tree_of(arrays, hosts, request)
        self.capacity = capacities(arrays, hosts, request.weights)
        fills = request.action is Action.EXPAND
        self.problem = problem_of(
            self.layout,
            self.tree,
            request,
            partitions=self.movable,
            brokers=hosts if fills else named,
            capacity=self.capacity,
            whole=False,
        )
        if fills:
            self.problem = replace(self.problem, takes=self.problem.takes & named)
        self.led_weights = np.stack(
            [partition_weight(arrays, resource) for resource in led(request.tolerances)]
        )
        if moved is not None:
            self.layout.rows[moved.partitions] = moved.rows
            self.layout.refresh()

    def held(self) -> SliceLoads:
        """Loads of brokers by this slice, under its present rows."""
        layout, brokers = self.layout, len(self.tree.hosts)
        leads = layout.rows[:, :1]
        return SliceLoads(
            np.stack([broker_sums(layout.rows, w, brokers) for w in self.problem.weights]),
            np.stack([broker_sums(leads, w, brokers) for w in self.led_weights]),
            layout.packed(),
        )

    def survey(self) -> Survey:
        """The facts about the slice."""
        targets = self.problem.targets
        return Survey(
            held=self.held(),
            share=targets.share,
            fair=targets.fair,
            domain=targets.domain,
            total_led=self.led_weights.sum(axis=1),
            known=known_resources(self.arrays),
            even=RackConstraint(self.tree, self.layout.origin[self.movable]).even(),
            infeasible=self.notes,
        )

    def shift(self, goal: Goal, part: float, budget: Floats) -> None:
        """Work off a part of every broker's distance to its band, with the search of a whole
        cluster.
        """
        layout = self.layout
        left = np.maximum(goal.headrooms - goal.held.packed, 0)
        headrooms = layout.packed() + (left * part).astype(np.int64)
        limited = (goal.headrooms >= 0) & (goal.headrooms < UNLIMITED)
        layout.set_headrooms(np.where(limited, headrooms, goal.headrooms))
        problem = replace(self.problem, targets=self._targets(goal, part))
        before, rows = Search(problem).outside(), layout.rows.copy()
        rebalance(problem, self.capacity, part_of_a_cluster=True)
        prefer_sources(problem)
        if np.isfinite(budget).any():
            keep_within_budget(problem, budget)
        if Search(problem).outside() >= before:
            layout.rows[:] = rows
            layout.refresh()
        settle_leaders(layout)

    def _targets(self, goal: Goal, part: float) -> Any:
        """The slice's own bands: its present load plus its part of the remaining distance."""
        problem, load = self.problem, self.held().load
        off = [(edge - goal.held.load) * part for edge in (goal.low, goal.share, goal.high)]
        low, share, high = (np.maximum(load + distance, 0) for distance in off)
        stays = problem.gives & ~problem.leaving
        for edge in (low, share, high):
            edge[:, problem.leaving] = 0
        for number in np.unique(goal.domain[problem.gives]):
            brokers = problem.gives & (goal.domain == number)
            takes = brokers & stays
            if takes.any():
                weight = goal.share[:, takes] / np.maximum(
                    goal.share[:, takes].sum(axis=1, keepdims=True), 1e-300
                )
                lacks = (load[:, brokers].sum(axis=1) - share[:, brokers].sum(axis=1))[:, None]
                for edge in (low, share, high):
                    edge[:, takes] = np.maximum(edge[:, takes] + lacks * weight, 0)
        share = np.where(problem.gives, np.rint(share), load)
        loose = np.isinf(goal.high)
        low = np.where(loose, 0, np.minimum(np.ceil(low), share))
        high = np.where(loose, np.inf, np.maximum(np.floor(high), share))
        return replace(problem.targets, share=share, low=low, high=high, domain=goal.domain)

    def lead(self, goal: Goal, part: float) -> None:
        """Work off a part of every broker's distance to its share of leaders and bytes out."""
        banded = np.isfinite(goal.led_tolerance)
        led = self.held().led
        share = np.maximum(led + (goal.led_share - goal.held.led) * part, 0)
        shares = LedShares(
            self.led_weights * banded[:, None],
            share * banded[:, None],
            np.where(banded, goal.led_tolerance, 1.0),
            self.request.one_sided,
        )
        balance_leaders_by_share(self.layout, shares, self.movable, self.tree.hosts)

    def report(self, goal: Goal, before: Floats) -> Report:
        """The slice's part of the plan.

        :param before: (K, B) load of each broker of the cluster before.
        """
        # The slice's band is the cluster's band minus what other slices hold.
        problem = replace(self.problem, targets=self._targets(goal, 1.0))
        needs = replace(CopyReasons.of(problem), before=before, share=goal.share)
        return Report.of(
            Outcome(
                layout=self.layout,
                tree_before=self.tree,
                tree_after=self.tree,
                lower_bound_bytes=0,
                reason=MoveReason.BALANCE,
                why=balance_reasons(problem, needs),
                bands=ResourceBands({}, {}, {}, {}, asked(self.request.tolerances)),
            ),
            self.pace,
        )


@dataclass(frozen=True)
class SurveySlice:
    """Surveys a slice."""

    context: Context

    def run(self, replicas: pa.Table) -> Survey:
        """The facts, or the problems that prevent a plan."""
        try:
            return Part(self.context, replicas).survey()
        except InvalidRequestError as error:
            nothing = np.zeros(0)
            held = SliceLoads(nothing, nothing, nothing.astype(np.int64))
            return Survey(
                held,
                nothing,
                nothing,
                held.packed,
                nothing,
                frozenset(),
                True,
                (),
                error.problems,
            )


@dataclass(frozen=True)
class BalanceSlice:
    """One balancing step: a slice works off a part of the distance.

    :param moved: what the slice has moved so far.
    :param budget: (2,) bytes and moves that it may spend.
    :param leads: change leaders instead of moving replicas.
    """

    context: Context
    goal: Goal
    part: float
    moved: SliceMoves | None
    budget: Floats
    leads: bool = False

    def run(self, replicas: pa.Table) -> tuple[SliceMoves, SliceLoads]:
        """All moves of the slice after the step, and its loads then."""
        part = Part(self.context, replicas, self.moved)
        if self.leads:
            part.lead(self.goal, self.part)
        else:
            part.shift(self.goal, self.part, self.budget)
        return SliceMoves.of(part.layout), part.held()


@dataclass(frozen=True)
class ReportSlice:
    """Reports the final state of a slice."""

    context: Context
    goal: Goal
    moved: SliceMoves | None
    before: Floats

    def run(self, replicas: pa.Table) -> Report:
        """The slice's part of the plan."""
        part = Part(self.context, replicas, self.moved)
        return part.report(self.goal, self.before)
