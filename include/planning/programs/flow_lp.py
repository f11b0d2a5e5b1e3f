"""A linear program over some brokers: which replicas leave, and where they arrive.

The replicas that matter most are variables by themselves, one per broker that may take them. All
others are amounts of classes of like replicas (by size, and by rate per byte): what leaves each
broker, and what arrives at each. A band that cannot be met is missed at a price far above that of
any copy, so that there is always a solution. Loads are in shares of the mean broker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, eye_array, hstack, vstack

from include.domain.array_types import Floats, Ints
from include.planning.search.broker_shed import BYTES, RATE, REPLICAS

MISSED = 20.0
"""What a share outside of a band costs, in shares of bytes copied."""

NEAR = 8
"""Brokers, the cheapest, among which the program chooses for a replica of its own."""

NODES, GAP = 50, 0.005
"""Branches, and part of the cost, after which a program of whole replicas is good enough."""


@dataclass(frozen=True)
class Classes:
    """Like replicas of one program.

    :param number: (n,) class of each replica; ``owner``: (n,) its broker.
    :param mean: (K, C) what one replica of a class weighs.
    :param count, mass: (C, B) replicas of a class on a broker; (K, C, B) what they weigh.
    """

    number: Ints
    owner: Ints
    mean: Floats
    count: Floats
    mass: Floats

    @classmethod
    def of(cls, weight: Floats, owner: Ints, brokers: int, bins: tuple[int, int]) -> Classes:
        """Classes by quantiles: so many by size, and of each so many by rate per byte. The coldest
        and the hottest replicas are the ones that move, so classes are finer towards both ends.
        """
        size = np.log(np.maximum(weight[BYTES], 1e-300))
        heat = np.log(np.maximum(weight[RATE], 1e-300)) - size
        number, many = (
            quantile(size, bins[0]) * bins[1] + _finer_at_ends(heat, bins[1]),
            math.prod(bins),
        )
        cell = number * brokers + owner
        count = np.bincount(cell, minlength=many * brokers).reshape(many, brokers)
        mass = np.stack([np.bincount(cell, w, count.size).reshape(count.shape) for w in weight])
        mean: Floats = mass.sum(axis=2) / np.maximum(count.sum(axis=1), 1)
        return cls(number, owner, mean, count.astype(float), mass.astype(float))


@dataclass(frozen=True)
class FlowSolution:
    """What the program says.

    :param part: (n, B) of each replica of its own, where it should go; the rest of it stays.
    :param leaves: (C, B) part of each class that leaves a broker.
    :param prices: (K, B) what a share of load costs on each broker.
    """

    part: Floats
    leaves: Floats
    prices: Floats


@dataclass(frozen=True)
class _Posed:
    """A program's matrices. Variables: what replicas of their own do, what part of a class leaves
    a broker, how many of a class arrive at one, and what bands are missed by.

    :param own, to: (V,) replica and broker of each of the first variables.
    :param cost, limit: (W,) of each variable, in shares of bytes; the most that it may be.
    :param rows, most: what sums of variables may not exceed: bands, and each replica goes once.
    :param kept: sums that are zero: what leaves arrives.
    """

    own: Ints
    to: Ints
    cost: Floats
    limit: Floats
    rows: csr_array
    most: Floats
    kept: csr_array

    def parts(self, solution: Floats, replicas: int, brokers: int) -> Floats:
        """(n, B) of each replica of its own, where a solution has it go."""
        part = np.zeros((replicas, brokers))
        part[self.own, self.to] = solution[: len(self.own)]
        return part


@dataclass(frozen=True)
class Program:
    """Some brokers and what they hold.

    :param load, low, high: (K, B) held, and the band that loads have to end in.
    :param takes: indexes of the brokers that may receive.
    :param overhead: what a move costs beside its bytes.
    """

    load: Floats
    low: Floats
    high: Floats
    takes: Ints
    overhead: float

    def moved(self, weight: Floats, source: Ints, target: Ints) -> Program:
        """The same after replicas (K, n) went from their sources to their targets."""
        count = self.load.shape[1]
        change = [np.bincount(target, w, count) - np.bincount(source, w, count) for w in weight]
        return replace(self, load=self.load + np.stack(change))

    def lifted(self, gone: Floats) -> Program:
        """The same without some of the load (K, B)."""
        return replace(self, load=self.load - gone)

    def solve(self, weight: Floats, owner: Ints, classes: Classes, prices: Floats) -> FlowSolution:
        """The cheapest way into the bands.

        :param weight, owner: (K, n), (n,) of the replicas that are variables of their own.
        :param prices: (K, B) that show which brokers are near enough for each of those.
        """
        posed = self._posed(weight, owner, classes, prices)
        solved = linprog(
            posed.cost,
            A_ub=posed.rows,
            b_ub=posed.most,
            A_eq=posed.kept,
            b_eq=np.zeros(posed.kept.shape[0]),
            bounds=np.c_[np.zeros(len(posed.limit)), posed.limit],
            method="highs-ds",
        )
        if solved.x is None:
            raise RuntimeError(f"The linear program of a rebalance failed: {solved.message}")
        kinds, brokers = classes.count.shape
        leaves, singles = np.zeros((kinds, brokers)), len(posed.own)
        kind, giver = np.nonzero(classes.count)
        leaves[kind, giver] = solved.x[singles : singles + len(kind)]
        banded = self._banded()
        above, below = np.split(solved.ineqlin.marginals[: 2 * len(banded)], 2)
        charged = np.zeros(self.load.size)
        charged[banded] = below - above
        part = posed.parts(solved.x, len(owner), brokers)
        return FlowSolution(part, leaves, charged.reshape(self.load.shape))

    def whole(self, weight: Floats, owner: Ints, classes: Classes, prices: Floats) -> Floats | None:
        """(n, B) the same where each replica of its own goes as a whole or stays: ones and zeros.

        Of what was found after ``NODES`` branches, the cheapest; None = nothing was.
        """
        posed = self._posed(weight, owner, classes, prices)
        singles = np.arange(len(posed.cost)) < len(posed.own)
        solved = milp(
            posed.cost,
            integrality=singles,
            bounds=Bounds(0.0, np.where(singles, 1.0, posed.limit)),
            constraints=[
                LinearConstraint(posed.rows, -np.inf, posed.most),
                LinearConstraint(posed.kept, 0.0, 0.0),
            ],
            options={"node_limit": NODES, "mip_rel_gap": GAP},
        )
        if solved.x is None:
            return None
        return np.rint(posed.parts(solved.x, len(owner), self.load.shape[1]))

    def _banded(self) -> Ints:
        return np.flatnonzero(np.isfinite(self.high).ravel())

    def _posed(self, weight: Floats, owner: Ints, classes: Classes, prices: Floats) -> _Posed:
        own, to = self._options(weight, owner, prices)
        kinds = len(classes.count)
        kind, giver = np.nonzero(classes.count)
        arrives, taker = np.repeat(np.arange(kinds), len(self.takes)), np.tile(self.takes, kinds)
        mass, mean = classes.mass[:, kind, giver], classes.mean[:, arrives]
        load = hstack(
            [
                self._sums(weight[:, own], to) - self._sums(weight[:, own], owner[own]),
                -self._sums(mass, giver),
                self._sums(mean, taker),
            ]
        ).tocsr()
        banded = self._banded()
        variables, missed = load.shape[1], len(banded)
        once = csr_array(
            (np.ones(len(own)), (own, np.arange(len(own)))), (len(owner), variables + 2 * missed)
        )
        return _Posed(
            own=own,
            to=to,
            cost=np.r_[
                weight[BYTES, own] + self.overhead,
                mass[BYTES] + self.overhead * classes.count[kind, giver],
                np.zeros(len(taker)),
                np.full(2 * missed, MISSED),
            ],
            rows=vstack([elastic(load[banded]), once]).tocsr(),
            most=np.r_[
                (self.high - self.load).ravel()[banded],
                (self.load - self.low).ravel()[banded],
                np.ones(len(owner)),
            ],
            kept=hstack(
                [
                    csr_array((kinds + len(mass) - 1, len(own))),
                    _kept(classes.count[kind, giver], kind, mass, kinds),
                    -_kept(np.ones(len(taker)), arrives, mean, kinds),
                    csr_array((kinds + len(mass) - 1, 2 * missed)),
                ]
            ).tocsr(),
            limit=np.r_[
                np.full(len(own), np.inf),
                np.ones(len(kind)),
                np.full(len(taker) + 2 * missed, np.inf),
            ],
        )

    def arrivals(self, classes: Classes) -> Floats:
        """(C, B) how many replicas of each class should arrive at each broker so that the least
        load is outside of the bands; the replicas are on no broker by now.
        """
        kinds, takers = len(classes.count), len(self.takes)
        kind, to = np.repeat(np.arange(kinds), takers), np.tile(self.takes, kinds)
        banded = self._banded()
        missed = 2 * len(banded)
        load = self._sums(classes.mean[:, kind], to)[banded]
        solved = linprog(
            np.r_[np.zeros(len(kind)), np.ones(missed)],
            A_ub=elastic(load),
            b_ub=np.r_[
                (self.high - self.load).ravel()[banded], (self.load - self.low).ravel()[banded]
            ],
            A_eq=csr_array(
                (np.ones(len(kind)), (kind, np.arange(len(kind)))), (kinds, len(kind) + missed)
            ),
            b_eq=classes.count.sum(axis=1),
            method="highs-ds",
        )
        if solved.x is None:
            raise RuntimeError(f"The linear program of a rebalance failed: {solved.message}")
        arrivals = np.zeros((kinds, self.load.shape[1]))
        arrivals[kind, to] = solved.x[: len(kind)]
        return arrivals

    def _options(self, weight: Floats, owner: Ints, prices: Floats) -> tuple[Ints, Ints]:
        """Which replica may go to which broker."""
        charged = charges(weight, prices[:, self.takes])
        charged[owner[:, None] == self.takes] = np.inf
        near = np.argsort(charged, axis=1, kind="stable")[:, :NEAR]
        own, column = np.repeat(np.arange(len(owner)), near.shape[1]), near.ravel()
        allowed = np.isfinite(charged[own, column])
        return own[allowed], self.takes[column[allowed]]

    def _sums(self, mass: Floats, brokers: Ints) -> csr_array:
        """(K · B, n) what each variable adds to each load."""
        resources, count = self.load.shape
        row = (np.arange(resources)[:, None] * count + brokers).ravel()
        column = np.tile(np.arange(len(brokers)), resources)
        return csr_array((mass.ravel(), (row, column)), (self.load.size, len(brokers)))


def charges(weight: Floats, prices: Floats) -> Floats:
    """(n, B) what replicas (K, n) cost at brokers that charge prices (K, B)."""
    charged = np.zeros((weight.shape[1], prices.shape[1]))
    for of, price in zip(weight, prices, strict=True):  # one order of sums on any machine
        charged += of[:, None] * price
    return charged


def elastic(load: csr_array) -> csr_array:
    """Rows of (upper, lower) ends of bands, each with a variable, behind all others, for what it is
    missed by.
    """
    miss = eye_array(load.shape[0], format="csr")
    none = csr_array(miss.shape)
    return vstack([hstack([load, -miss, none]), hstack([-load, none, -miss])]).tocsr()


def _kept(count: Floats, kind: Ints, mass: Floats, kinds: int) -> csr_array:
    """What leaves or arrives: replicas of every class; bytes and rates of all together."""
    by_class = csr_array((count, (kind, np.arange(len(kind)))), (kinds, len(kind)))
    return vstack([by_class, csr_array(np.delete(mass, REPLICAS, axis=0))])


def quantile(values: Floats, bins: int) -> Ints:
    """(n,) which of so many equally large groups, by size, each value lies in."""
    return _parted(values, np.linspace(0, 1, bins + 1)[1:-1])


def _finer_at_ends(values: Floats, bins: int) -> Ints:
    """(n,) which of so many groups, by size, each value lies in; the outer ones are smaller."""
    even = np.linspace(0, 1, bins + 1)[1:-1]
    return _parted(values, even**2 * (3 - 2 * even))


def _parted(values: Floats, parts: Floats) -> Ints:
    """(n,) how many of these quantiles each value is above."""
    if not len(values):
        return np.zeros(0, np.int64)
    found: Ints = np.searchsorted(np.quantile(values, parts), values)
    return found
