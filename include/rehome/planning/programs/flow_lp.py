"""Linear program over some brokers: which replicas leave, and where they go.

Individual replicas (the largest) have one variable per broker that may take them. All others are
grouped into classes by size and by rate per byte; variables say how much of a class leaves each
broker, and how much arrives. Bands are soft constraints with a penalty far above the cost of any
copy, so that there is always a solution. Loads are in shares of the mean broker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, eye_array, hstack, vstack

from rehome.domain.array_types import Floats, Ints
from rehome.planning.search.broker_shed import BYTES_ROW, RATE_ROW, REPLICAS_ROW


@dataclass(frozen=True, slots=True)
class FlowOptions:
    """Prices and limits of the programs.

    :param missed: penalty for one share outside a band, in shares of bytes copied.
    :param near: the cheapest target brokers that an individual replica has variables for.
    :param nodes: limit of the branch-and-bound search for whole replicas, in nodes.
    :param gap: its relative gap.
    """

    missed: float = 20.0
    near: int = 8
    nodes: int = 50
    gap: float = 0.005


FLOW = FlowOptions()


@dataclass(frozen=True)
class Classes:
    """Classes of similar replicas in one program.

    :param number: (n,) class of each replica; ``owner``: (n,) its broker.
    :param mean: (K, C) mean load of a replica of each class.
    :param count, mass: (C, B) replicas of a class on a broker; (K, C, B) their load.
    """

    number: Ints
    owner: Ints
    mean: Floats
    count: Floats
    mass: Floats

    @classmethod
    def of(cls, weight: Floats, owner: Ints, brokers: int, bins: tuple[int, int]) -> Classes:
        """Classes by quantiles of size and, within each, of rate per byte (``bins`` says how many
        of each). The coldest and the hottest replicas are the ones that move, so classes are finer
        at both ends.
        """
        size = np.log(np.maximum(weight[BYTES_ROW], 1e-300))
        heat = np.log(np.maximum(weight[RATE_ROW], 1e-300)) - size
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
    """The solution of the program.

    :param part: (n, B) fraction of each individual replica that goes to each broker; the rest
        stays.
    :param leaves: (C, B) fraction of each class that leaves a broker.
    :param prices: (K, B) dual prices: cost of one share of load on each broker.
    :param cost: of copies and of what is outside the bands, in shares of bytes.
    """

    part: Floats
    leaves: Floats
    prices: Floats
    cost: float


@dataclass(frozen=True)
class _Posed:
    """A program's matrices. Variables, in this order: targets of individual replicas; fraction of a
    class that leaves a broker; number of a class that arrives at a broker; distances to the bands.

    :param own, to: (V,) replica and target broker of each of the first variables.
    :param cost, limit: (W,) cost of each variable, in shares of bytes; and its upper bound.
    :param rows, most: inequality constraints: bands, and each replica moves at most once.
    :param kept: equality constraints, = 0: what leaves arrives.
    """

    own: Ints
    to: Ints
    cost: Floats
    limit: Floats
    rows: csr_array
    most: Floats
    kept: csr_array

    def parts(self, solution: Floats, replicas: int, brokers: int) -> Floats:
        """(n, B) fraction of each individual replica that goes to each broker."""
        part = np.zeros((replicas, brokers))
        part[self.own, self.to] = solution[: len(self.own)]
        return part


@dataclass(frozen=True)
class Program:
    """Some brokers and their loads.

    :param load, low, high: (K, B) load now, and the band that it has to end in.
    :param takes: indexes of the brokers that may receive.
    :param overhead: fixed cost of a move.
    """

    load: Floats
    low: Floats
    high: Floats
    takes: Ints
    overhead: float

    def with_moves(self, weight: Floats, source: Ints, target: Ints) -> Program:
        """The same after replicas (K, n) went from their sources to their targets."""
        count = self.load.shape[1]
        change = [np.bincount(target, w, count) - np.bincount(source, w, count) for w in weight]
        return replace(self, load=self.load + np.stack(change))

    def without_load(self, gone: Floats) -> Program:
        """The same without some of the load (K, B)."""
        return replace(self, load=self.load - gone)

    def solve(self, weight: Floats, owner: Ints, classes: Classes, prices: Floats) -> FlowSolution:
        """Solve for the cheapest way into the bands.

        :param weight, owner: (K, n), (n,) load and broker of the individual replicas.
        :param prices: (K, B) dual prices that select the targets of each individual replica.
        """
        posed = self._pose(weight, owner, classes, prices)
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
            raise _unsolved_error(solved.message)
        kinds, brokers = classes.count.shape
        leaves, singles = np.zeros((kinds, brokers)), len(posed.own)
        kind, giver = np.nonzero(classes.count)
        leaves[kind, giver] = solved.x[singles : singles + len(kind)]
        banded = self._rows_of_bands()
        above, below = np.split(solved.ineqlin.marginals[: 2 * len(banded)], 2)
        charged = np.zeros(self.load.size)
        charged[banded] = below - above
        part = posed.parts(solved.x, len(owner), brokers)
        return FlowSolution(part, leaves, charged.reshape(self.load.shape), float(solved.fun))

    def whole(self, weight: Floats, owner: Ints, classes: Classes, prices: Floats) -> Floats | None:
        """(n, B) the same as a mixed-integer program: individual replicas move as a whole (0 or 1).

        The cheapest solution after ``FLOW.nodes`` nodes; None = none was found.
        """
        posed = self._pose(weight, owner, classes, prices)
        singles = np.arange(len(posed.cost)) < len(posed.own)
        solved = milp(
            posed.cost,
            integrality=singles,
            bounds=Bounds(0.0, np.where(singles, 1.0, posed.limit)),
            constraints=[
                LinearConstraint(posed.rows, -np.inf, posed.most),
                LinearConstraint(posed.kept, 0.0, 0.0),
            ],
            options={"node_limit": FLOW.nodes, "mip_rel_gap": FLOW.gap},
        )
        if solved.x is None:
            return None
        return np.rint(posed.parts(solved.x, len(owner), self.load.shape[1]))

    def _rows_of_bands(self) -> Ints:
        return np.flatnonzero(np.isfinite(self.high).ravel())

    def _pose(self, weight: Floats, owner: Ints, classes: Classes, prices: Floats) -> _Posed:
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
        banded = self._rows_of_bands()
        variables, missed = load.shape[1], len(banded)
        once = csr_array(
            (np.ones(len(own)), (own, np.arange(len(own)))), (len(owner), variables + 2 * missed)
        )
        return _Posed(
            own=own,
            to=to,
            cost=np.r_[
                weight[BYTES_ROW, own] + self.overhead,
                mass[BYTES_ROW] + self.overhead * classes.count[kind, giver],
                np.zeros(len(taker)),
                np.full(2 * missed, FLOW.missed),
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
                    _conservation(classes.count[kind, giver], kind, mass, kinds),
                    -_conservation(np.ones(len(taker)), arrives, mean, kinds),
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
        """(C, B) how many replicas of each class should arrive at each broker, such that the total
        excess is minimal. These replicas are on no broker at this point.
        """
        kinds, takers = len(classes.count), len(self.takes)
        kind, to = np.repeat(np.arange(kinds), takers), np.tile(self.takes, kinds)
        banded = self._rows_of_bands()
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
            raise _unsolved_error(solved.message)
        arrivals = np.zeros((kinds, self.load.shape[1]))
        arrivals[kind, to] = solved.x[: len(kind)]
        return arrivals

    def _options(self, weight: Floats, owner: Ints, prices: Floats) -> tuple[Ints, Ints]:
        """The (replica, broker) pairs that get a variable."""
        charged = charges(weight, prices[:, self.takes])
        charged[owner[:, None] == self.takes] = np.inf
        near = np.argsort(charged, axis=1, kind="stable")[:, : FLOW.near]
        own, column = np.repeat(np.arange(len(owner)), near.shape[1]), near.ravel()
        allowed = np.isfinite(charged[own, column])
        return own[allowed], self.takes[column[allowed]]

    def _sums(self, mass: Floats, brokers: Ints) -> csr_array:
        """(K · B, n) contribution of each variable to each load."""
        resources, count = self.load.shape
        row = (np.arange(resources)[:, None] * count + brokers).ravel()
        column = np.tile(np.arange(len(brokers)), resources)
        return csr_array((mass.ravel(), (row, column)), (self.load.size, len(brokers)))


def charges(weight: Floats, prices: Floats) -> Floats:
    """(n, B) cost of replicas (K, n) on brokers with prices (K, B)."""
    charged = np.zeros((weight.shape[1], prices.shape[1]))
    for of, price in zip(weight, prices, strict=True):  # one order of sums on any machine
        charged += of[:, None] * price
    return charged


def elastic(load: csr_array) -> csr_array:
    """Add slack variables to the rows of (upper, lower) band ends, as the last variables: the
    distance by which each is missed.
    """
    miss = eye_array(load.shape[0], format="csr")
    none = csr_array(miss.shape)
    return vstack([hstack([load, -miss, none]), hstack([-load, none, -miss])]).tocsr()


def _conservation(count: Floats, kind: Ints, mass: Floats, kinds: int) -> csr_array:
    """Conservation: replicas per class, and bytes and rates in total, that leave and arrive."""
    by_class = csr_array((count, (kind, np.arange(len(kind)))), (kinds, len(kind)))
    return vstack([by_class, csr_array(np.delete(mass, REPLICAS_ROW, axis=0))])


def quantile(values: Floats, bins: int) -> Ints:
    """(n,) quantile bin of each value; bins are equally large."""
    return _quantiles(values, np.linspace(0, 1, bins + 1)[1:-1])


def _finer_at_ends(values: Floats, bins: int) -> Ints:
    """(n,) quantile bin of each value; outer bins are smaller."""
    even = np.linspace(0, 1, bins + 1)[1:-1]
    return _quantiles(values, even**2 * (3 - 2 * even))


def _quantiles(values: Floats, parts: Floats) -> Ints:
    """(n,) how many of these quantiles each value exceeds."""
    quantile_numbers = np.zeros(len(values), np.int16)
    if len(values):
        for least in np.quantile(np.sort(values), parts).tolist():  # few: faster than a search
            quantile_numbers += values > least
    return quantile_numbers.astype(np.int64)


def _unsolved_error(why: str) -> RuntimeError:
    return RuntimeError(
        f"The solver (HiGHS) did not solve a linear program of this rebalance: {why}. Without it "
        "there is no plan. Trigger a new run with another effort or other tolerances; if it fails "
        "again, report it with the snapshot."
    )
