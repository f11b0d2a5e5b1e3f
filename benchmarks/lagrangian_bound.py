"""Lagrangian lower bound on the bytes that a rebalance copies, over all resources.

Lagrangian relaxation: the band constraints are replaced by a price per unit of load on each broker.
The relaxed problem is easy: a replica moves if another broker of its domain is cheaper by more than
the replica's bytes. For any prices, its cost is a lower bound for all plans that meet the bands.
The relaxation ignores the spread rule inside a domain, and that replicas are whole. Start prices
come from a linear program over classes of replicas; Polyak's subgradient steps then improve them.
"""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.planning.model.arrays import broker_sums
from rehome.planning.placement.rack_constraint import RackConstraint
from rehome.planning.programs.flow_lp import Classes, Program
from rehome.planning.search.state import Problem

_CLASSES, _FEWER_CLASSES = (12, 24), (6, 24)
"""Classes of the linear program, by size and by rate per byte; the second pair is for clusters of
more than ``MANY_BROKERS``."""

MANY_BROKERS = 200
SUBGRADIENT_STEPS = 200
PATIENCE = 12
"""Steps without a better bound after which the step size is multiplied by ``SLOWER``."""

SLOWER = 0.6
REPLICAS_PER_BATCH = 200_000
"""Replicas that are priced in one batch."""


def lagrangian_bound(
    problem: Problem, load: Floats, copied: float, steps: int = SUBGRADIENT_STEPS
) -> float:
    """Lower bound in bytes for all plans whose loads are at least as close to the bands as
    ``load``.

    :param load: (K, B) reached; a band that is not met is widened to it.
    :param copied: bytes that a known plan copies: the target of Polyak's step size.
    :param steps: subgradient steps; each prices all replicas.
    """
    relaxed = _Relaxed(problem, load)
    if not relaxed.replicas:
        return 0.0
    prices, best, theta, stale = relaxed.class_prices(), 0.0, 1.0, 0
    goal = copied / relaxed.unit
    for _ in range(steps + 1):
        value, slope = relaxed.value(prices)
        if value > best * (1 + 1e-6):
            best, stale = value, 0
        else:
            stale += 1
        if stale > PATIENCE:
            theta, stale = theta * SLOWER, 0
        length = theta * max(goal - value, 1e-4 * goal) / (float((slope**2).sum()) + 1e-12)
        prices = relaxed.admitted(prices + length * slope)
    return best * relaxed.unit


class _Relaxed:
    """The relaxed problem, in shares of the mean broker.

    :ivar replicas: number of movable replicas; ``held``: (B,) brokers that have a band.
    """

    def __init__(self, problem: Problem, reached: Floats) -> None:
        targets, origin = problem.targets, problem.layout.origin
        scale = 1 / np.maximum(targets.share.mean(axis=1), 1e-9)[:, None]
        self.unit = float(1 / scale[0, 0])
        flat = origin.ravel()
        replicas = np.flatnonzero(
            np.repeat(problem.partitions, origin.shape[1]) & (flat != NONE) & problem.gives[flat]
        )
        owner = flat[replicas].astype(np.int64)
        weight = problem.weights[:, replicas // origin.shape[1]] * scale
        forced = problem.leaving[owner]
        self._owners = owner[~forced], owner[forced]
        self._weights = weight[:, ~forced], weight[:, forced]
        self.replicas = len(owner)
        self.domain = _domains(problem)
        self.held: Mask = problem.gives & ~problem.leaving
        self.takes: Mask = problem.takes & self.held
        load = [broker_sums(origin, of, len(self.held)) for of in problem.weights]
        self.load = np.stack(load) * scale
        self.low = np.minimum(targets.low, reached) * scale
        self.high = np.maximum(targets.high, reached) * scale

    def admitted(self, prices: Floats) -> Floats:
        """Project prices to the signs that the bands allow: a band without upper end has no
        positive price.
        """
        least = np.where(np.isfinite(self.low), -np.inf, 0.0)
        signed: Floats = np.clip(prices, least, np.where(np.isfinite(self.high), np.inf, 0.0))
        return signed

    def value(self, prices: Floats) -> tuple[float, Floats]:
        """The cost of the relaxed problem, and its subgradient at these prices (K, B)."""
        load, cost = self.load.copy(), 0.0
        for owner, weight, forced in zip(self._owners, self._weights, (False, True), strict=True):
            for start in range(0, len(owner), REPLICAS_PER_BATCH):
                part = slice(start, start + REPLICAS_PER_BATCH)
                cost += self._move(prices, owner[part], weight[:, part], forced, load)
        above, below = np.maximum(prices, 0), np.maximum(-prices, 0)
        high, low = (np.where(np.isfinite(of), of, 0.0) for of in (self.high, self.low))
        edges = prices * self.load - above * high + below * low
        band = np.where(prices > 0, self.high, self.low)
        band = np.where(prices == 0, np.clip(load, self.low, self.high), band)
        return cost + float(edges[:, self.held].sum()), np.where(self.held, load - band, 0.0)

    def _move(
        self, prices: Floats, owner: Ints, weight: Floats, forced: bool, load: Floats
    ) -> float:
        """Put each replica on its cheapest broker. Returns the cost; updates ``load``."""
        cost, target = weight[0].copy(), np.full(len(owner), NONE)
        for number in np.unique(self.domain[owner]):
            mine = np.flatnonzero(self.domain[owner] == number)
            cheap = _cheapest(prices, np.flatnonzero(self.takes & (self.domain == number)))
            if not len(cheap):
                cost[mine] = np.inf
                continue
            charged = weight[:, mine].T @ prices[:, cheap]
            best = charged.argmin(axis=1)
            cost[mine] += charged[np.arange(len(mine)), best]
            target[mine] = cheap[best]
        if forced:
            cost, moves = np.where(np.isfinite(cost), cost, weight[0]), target != NONE
        else:
            cost -= (prices[:, owner] * weight).sum(axis=0)
            moves = cost < 0
        for row, of in zip(load, weight, strict=True):
            row += np.bincount(target[moves], of[moves], len(row))
            if not forced:
                row -= np.bincount(owner[moves], of[moves], len(row))
        return float(cost[moves | forced].sum())

    def class_prices(self) -> Floats:
        """Start prices: duals of one linear program per domain over classes of replicas
        (``Program``).
        """
        prices = np.zeros(self.load.shape)
        low = np.where(self.held, self.low, 0.0)
        high = np.where(self.held | np.isinf(self.high), self.high, 0.0)
        bins = _CLASSES if len(self.held) <= MANY_BROKERS else _FEWER_CLASSES
        for number in np.unique(self.domain[np.concatenate(self._owners)]):
            brokers = np.flatnonzero(self.domain == number)
            program = Program(
                self.load[:, brokers],
                low[:, brokers],
                high[:, brokers],
                np.flatnonzero(self.takes[brokers]),
                0.0,
            )
            mine = [np.flatnonzero(self.domain[of] == number) for of in self._owners]
            weight = np.hstack([w[:, of] for w, of in zip(self._weights, mine, strict=True)])
            owner = np.concatenate([o[of] for o, of in zip(self._owners, mine, strict=True)])
            classes = Classes.of(weight, np.searchsorted(brokers, owner), len(brokers), bins)
            none = np.zeros(0, np.int64)
            solved = program.solve(weight[:, none], none, classes, program.load * 0)
            prices[:, brokers] = np.where(self.held[brokers], solved.prices, 0.0)
        return self.admitted(prices)


def _domains(problem: Problem) -> Ints:
    """(B,) domain of each broker, numbered from 0; a single one if some rows are uneven."""
    layout, domain = problem.layout, problem.targets.domain
    if not RackConstraint(
        problem.tree, layout.origin[problem.partitions], np.flatnonzero(problem.partitions)
    ).even():
        domain = np.zeros_like(domain)
    numbers: Ints = np.unique(domain, return_inverse=True)[1]
    return numbers


def _cheapest(prices: Floats, brokers: Ints) -> Ints:
    """The brokers that no other broker dominates (as cheap in every resource); dominated ones are
    never chosen.
    """
    _, first = np.unique(prices[:, brokers], axis=1, return_index=True)
    left = brokers[first]
    charged = prices[:, left]
    beaten: Mask = np.asarray((charged[:, :, None] <= charged[:, None, :]).all(axis=0))
    np.fill_diagonal(beaten, False)
    return left[~beaten.any(axis=0)]
