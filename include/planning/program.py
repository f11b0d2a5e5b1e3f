"""A linear program over some brokers: which replicas leave, and where they arrive.

The replicas that matter most are variables by themselves, one per broker that may take them. All
others are amounts of classes of like replicas (by size, and by rate per byte): what leaves each
broker, and what arrives at each. A box that cannot be met is missed at a price far above that of
any copy, so that there is always a solution. Loads are in shares of the mean broker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from include.planning.arrays import Floats, Ints
from include.planning.shedder import BYTES, RATE

MISSED = 20.0
"""What a share outside of a box costs, in shares of bytes copied."""

NEAR = 8
"""Brokers, the cheapest, among which the program chooses for a replica of its own."""


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
class Solution:
    """What the program says.

    :param part: (n, B) of each replica of its own, where it should go; the rest of it stays.
    :param leaves: (C, B) part of each class that leaves a broker.
    :param prices: (K, B) what a share of load costs on each broker.
    """

    part: Floats
    leaves: Floats
    prices: Floats


@dataclass(frozen=True)
class Program:
    """Some brokers and what they hold.

    :param load, low, high: (K, B) held, and the box that loads have to end in.
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

    def solve(self, weight: Floats, owner: Ints, classes: Classes, prices: Floats) -> Solution:
        """The cheapest way into the boxes.

        :param weight, owner: (K, n), (n,) of the replicas that are variables of their own.
        :param prices: (K, B) that tell which brokers are near enough for each of those.
        """
        own, to = self._options(weight, owner, prices)
        kinds, brokers = classes.count.shape
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
        boxed = np.flatnonzero(np.isfinite(self.high).ravel())
        variables, missed = load.shape[1], len(boxed)
        once = csr_array(
            (np.ones(len(own)), (own, np.arange(len(own)))), (len(owner), variables + 2 * missed)
        )
        solved = linprog(
            np.r_[
                weight[BYTES, own] + self.overhead,
                mass[BYTES] + self.overhead * classes.count[kind, giver],
                np.zeros(len(taker)),
                np.full(2 * missed, MISSED),
            ],
            A_ub=vstack([_elastic(load[boxed]), once]),
            b_ub=np.r_[
                (self.high - self.load).ravel()[boxed],
                (self.load - self.low).ravel()[boxed],
                np.ones(len(owner)),
            ],
            A_eq=hstack(
                [
                    csr_array((kinds + 2, len(own))),
                    _kept(classes.count[kind, giver], kind, mass, kinds),
                    -_kept(np.ones(len(taker)), arrives, mean, kinds),
                    csr_array((kinds + 2, 2 * missed)),
                ]
            ),
            b_eq=np.zeros(kinds + 2),
            bounds=np.c_[
                np.zeros(variables + 2 * missed),
                np.r_[
                    np.full(len(own), np.inf),
                    np.ones(len(kind)),
                    np.full(len(taker) + 2 * missed, np.inf),
                ],
            ],
            method="highs-ds",
        )
        if solved.x is None:
            raise RuntimeError(f"The linear program of a rebalance failed: {solved.message}")
        part, leaves = np.zeros((len(owner), brokers)), np.zeros((kinds, brokers))
        part[own, to] = solved.x[: len(own)]
        leaves[kind, giver] = solved.x[len(own) : len(own) + len(kind)]
        above, below = np.split(solved.ineqlin.marginals[: 2 * missed], 2)
        charged = np.zeros(self.load.size)
        charged[boxed] = below - above
        return Solution(part, leaves, charged.reshape(self.load.shape))

    def seats(self, classes: Classes) -> Floats:
        """(C, B) how many replicas of each class should arrive at each broker so that the least
        load is outside of the boxes; the replicas are on no broker by now.
        """
        kinds, takers = len(classes.count), len(self.takes)
        kind, to = np.repeat(np.arange(kinds), takers), np.tile(self.takes, kinds)
        boxed = np.flatnonzero(np.isfinite(self.high).ravel())
        missed = 2 * len(boxed)
        load = self._sums(classes.mean[:, kind], to)[boxed]
        solved = linprog(
            np.r_[np.zeros(len(kind)), np.ones(missed)],
            A_ub=_elastic(load),
            b_ub=np.r_[
                (self.high - self.load).ravel()[boxed], (self.load - self.low).ravel()[boxed]
            ],
            A_eq=csr_array(
                (np.ones(len(kind)), (kind, np.arange(len(kind)))), (kinds, len(kind) + missed)
            ),
            b_eq=classes.count.sum(axis=1),
            method="highs-ds",
        )
        if solved.x is None:
            raise RuntimeError(f"The linear program of a rebalance failed: {solved.message}")
        seats = np.zeros((kinds, self.load.shape[1]))
        seats[kind, to] = solved.x[: len(kind)]
        return seats

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


def _elastic(load: csr_array) -> csr_array:
    """Rows of (upper, lower) ends of boxes, each with a variable for what it is missed by."""
    miss = eye_array(load.shape[0], format="csr")
    none = csr_array(miss.shape)
    return vstack([hstack([load, -miss, none]), hstack([-load, none, -miss])]).tocsr()


def _kept(count: Floats, kind: Ints, mass: Floats, kinds: int) -> csr_array:
    """What leaves or arrives: replicas of every class; bytes and rate of all together."""
    by_class = csr_array((count, (kind, np.arange(len(kind)))), (kinds, len(kind)))
    return vstack([by_class, csr_array(mass[[BYTES, RATE]])])


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
