"""The rounds of a sliced rebalance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from rehome.domain.array_types import Floats, Mask
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.request.request import Action
from rehome.domain.resources import LOOSE, Resource, asked, led, placed
from rehome.planning.expansion.donors import with_donors
from rehome.planning.leadership.leader_balance import LedShares
from rehome.planning.model.load_bands import LoadBands
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import brokers_named
from rehome.planning.rebalance.budget_cut import budget_of, for_each_of
from rehome.planning.rebalance.problem import asked_tolerances
from rehome.planning.result.resource_bands import ResourceBands
from rehome.planning.slices.slice_steps import BalanceSlice, Goal, SliceLoads, SliceMoves, Survey
from rehome.planning.slices.slices import Context, Slices

_FINISHING = 8
"""A round ends after this many slices in a row that bring no broker closer."""

_LEAST_CHANGE = 1e-9
"""The least change of excess that counts, in shares."""


class Balance:
    """The rounds of a rebalance or an expansion.

    :ivar goal: the cluster's present loads and bands; ``moved``: what each slice has moved.
    """

    def __init__(self, context: Context, slices: Slices, surveys: Sequence[Survey]) -> None:
        self._context, self._slices = context, slices
        self._held = [survey.held for survey in surveys]
        self._gives, self._named = _brokers_of(context)
        self._one_sided = context.request.one_sided
        self._placed = placed(context.request.tolerances)
        self._led = led(context.request.tolerances)
        self._fair = np.sum([survey.fair for survey in surveys], axis=0)
        self.known = frozenset[Resource]().union(*(survey.known for survey in surveys))
        self._tolerances = {
            resource: value if resource in self.known else LOOSE
            for resource, value in asked_tolerances(context.request).items()
        }
        self.moved: dict[int, SliceMoves] = {}
        self._before = reduce(add, self._held).load
        self.goal = self._goal(surveys)

    def run(self, *, leads: bool) -> None:
        """One round over all slices, then single slices, until none brings a broker closer."""
        slices, everyone = self._slices, range(self._slices.count)
        if self._beyond(self.goal.held, leads) <= 0:
            return
        self._take(everyone, 1 / slices.count, leads)
        failed, number = 0, 0
        if not leads and np.isfinite(self._budget(1)).any():
            return  # each slice has spent its part of the budget
        while failed < min(slices.count, _FINISHING) and self._beyond(self.goal.held, leads) > 0:
            failed = 0 if self._take([number], 1.0, leads) else failed + 1
            number = (number + 1) % slices.count

    def _take(self, numbers: Sequence[int], part: float, leads: bool) -> bool:
        """Let some slices work on a part of the distance. Returns whether brokers came closer; if
        not, the step is undone.
        """
        budget = self._budget(len(numbers))
        results = self._slices.each(
            {
                number: BalanceSlice(
                    self._context, self.goal, part, self.moved.get(number), budget, leads
                )
                for number in numbers
            }
        )
        held = list(self._held)
        for number, (_, now) in zip(numbers, results, strict=True):
            held[number] = now
        total = reduce(add, held)
        if self._beyond(total, leads) >= self._beyond(self.goal.held, leads) - _LEAST_CHANGE:
            return False
        self.moved |= {number: rows for number, (rows, _) in zip(numbers, results, strict=True)}
        self._held, self.goal = held, replace(self.goal, held=total)
        return True

    def _budget(self, slices: int) -> Floats:
        """(2,) bytes and moves that each of this many slices may spend."""
        return budget_of(for_each_of(slices, self._context.request))

    def _goal(self, surveys: Sequence[Survey]) -> Goal:
        context, gives = self._context, self._gives
        held, brokers = reduce(add, self._held), context.brokers()
        share = np.sum([survey.share for survey in surveys], axis=0)
        tolerance = np.array([self._tolerances[resource] for resource in self._placed])[:, None]
        loose = np.isinf(tolerance) | ~held.load.any(axis=1, keepdims=True)
        width = np.where(loose, 0, tolerance)
        least = np.zeros_like(share) if self._one_sided else np.floor(share * (1 - width))
        low = np.where(gives, least, held.load)
        high = np.where(gives, np.ceil(share * (1 + width)), held.load)
        high[0] = np.minimum(high[0], np.maximum(held.load[0] + brokers.headroom_bytes, low[0]))
        share = np.where(loose, held.load, np.clip(np.rint(share), low, high))
        domain = np.min([survey.domain for survey in surveys], axis=0)
        low, high = np.where(loose, 0, low), np.where(loose, np.inf, high)
        targets = LoadBands(share, low, high, domain, self._fair, ())
        if context.request.action is Action.EXPAND:
            targets = with_donors(targets, held.load, gives & ~self._named, tolerance[:, 0])
        capacity = capacities(context.empty(), brokers.live, context.request.weights)
        part = capacity * brokers.live
        total = np.sum([survey.total_led for survey in surveys], axis=0)
        return Goal(
            held=held,
            share=targets.share,
            low=targets.low,
            high=targets.high,
            domain=domain,
            led_share=total[:, None] * part / max(float(part.sum()), 1e-300),
            led_tolerance=np.array([self._tolerances[resource] for resource in self._led]),
            headrooms=brokers.headrooms,
        )

    def bands(self) -> ResourceBands:
        """The bands of the rebalance, for the plan's summary."""
        goal = self.goal
        targets = LoadBands(goal.share, goal.low, goal.high, goal.domain, self._fair, ())
        tolerance = np.where(np.isinf(goal.led_tolerance), 1.0, goal.led_tolerance)
        none = np.zeros((len(self._led), 0))
        lead = LedShares(none, goal.led_share, tolerance, self._one_sided)
        optional = asked(self._context.request.tolerances)
        return ResourceBands.of(targets, lead, self._tolerances, optional)

    def _off(self, held: SliceLoads) -> Floats:
        """(K, B) distance of brokers to their bands."""
        goal = self.goal
        outside = np.maximum(np.maximum(held.load - goal.high, goal.low - held.load), 0)
        off: Floats = outside * self._gives
        return off

    def _off_lead(self, held: SliceLoads) -> Floats:
        """(L, B) deviation from leader shares, beyond the tolerance."""
        goal = self.goal
        loose = np.isinf(goal.led_tolerance)[:, None]
        finite = np.where(loose, 0, goal.led_tolerance[:, None])
        slack = np.where(loose, np.inf, finite * goal.led_share + 1)
        beyond = held.led - goal.led_share
        off: Floats = np.maximum((beyond if self._one_sided else np.abs(beyond)) - slack, 0)
        return off

    def _beyond(self, held: SliceLoads, leads: bool) -> float:
        off, share = (
            (self._off_lead(held), self.goal.led_share)
            if leads
            else (self._off(held), self.goal.share)
        )
        return float((off / np.maximum(share, 1)).sum())

    def missed(self) -> tuple[Infeasible, ...]:
        """Brokers that end outside a band or off their share, with the obstacle."""
        goal, load = self.goal, self.goal.held.load
        budget = np.isfinite(self._budget(1)).any()
        why = Obstacle.BUDGET if budget else Obstacle.NO_MOVE
        edge = np.where(load > goal.high, goal.high, goal.low)
        named = self._named_where(self._off(goal.held) > 0, self._placed, edge, load, why)
        why = Obstacle.SHIFTED_SHARE
        named += self._named_where(self._shifted(), self._placed, np.rint(self._fair), load, why)
        why = Obstacle.NO_LEADER_CHANGE
        off = self._off_lead(goal.held) > 0
        return named + self._named_where(
            off, self._led, np.rint(goal.led_share), goal.held.led, why
        )

    def _shifted(self) -> Mask:
        """(K, B) brokers inside their bands but off their fair share."""
        tolerance = np.array([self._tolerances[resource] for resource in self._placed])[:, None]
        finite = np.where(np.isinf(tolerance), 0, tolerance)
        slack = np.where(np.isinf(tolerance), np.inf, finite * self._fair + 1)
        load = self.goal.held.load
        inside = (self._off(self.goal.held) == 0) & self._gives
        beyond = load - self._fair
        if self._context.request.action is Action.EXPAND:
            gave = ~self._named & (load < self._before)
            beyond = np.where(self._named | gave, beyond, 0)
            beyond = np.where(gave, np.minimum(beyond, 0), beyond)
        shifted: Mask = inside & ((beyond if self._one_sided else np.abs(beyond)) > slack)
        return shifted

    def _named_where(
        self,
        off: Mask,
        resources: Sequence[Resource],
        wanted: Floats,
        nearest: Floats,
        why: Obstacle,
    ) -> tuple[Infeasible, ...]:
        ids = self._context.brokers().ids
        return tuple(
            Infeasible(
                Subject.of_broker(ids[b]),
                why,
                wanted=float(wanted[k, b]),
                nearest=float(nearest[k, b]),
                resource=resources[k],
            )
            for k, b in np.argwhere(off).tolist()
        )


def _brokers_of(context: Context) -> tuple[Mask, Mask]:
    """(B,) brokers that take part; (B,) brokers that the request names."""
    arrays, request = context.empty(), context.request
    live = arrays.brokers.live
    named = brokers_named(arrays, request) if request.brokers else live
    return (live if request.action is Action.EXPAND else named), named
