"""The best plan of a small cluster, by a mixed-integer program (HiGHS).

In turn, each within what the ones before have reached: the least excess of brokers beyond their
bands, the fewest bytes, the fewest replicas. The rules are written down anew as linear constraints;
only the bands are the planner's.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from rehome.domain.array_types import NONE, UNLIMITED, Floats, Ints, Mask, Rows

MORE_BYTES = 1.02
"""Moves are counted among plans that copy at most this many times the fewest bytes."""

EVEN = 1e-6
"""Excess, in shares, that counts as none."""


@dataclass(frozen=True)
class Goal:
    """A placement problem, in plain numbers.

    :param rows: (P, R) brokers of each partition, padded with -1.
    :param size: (P,) bytes of one replica.
    :param weights: (K, P) load of one replica in each resource; ``low``, ``high``: (K, B).
    :param share: (K, B) of each broker; excess is measured in it.
    :param gives, takes: (B,) brokers that may lose replicas, and get some.
    :param headroom: (B,) bytes that may arrive.
    :param rack: (B,) number of each broker's rack.
    :param topic_of: (P,) of each partition; ``topic_low``, ``topic_high``: (T, B) replicas.
    """

    rows: Rows
    size: Floats
    weights: Floats
    low: Floats
    high: Floats
    share: Floats
    gives: Mask
    takes: Mask
    headroom: Floats
    rack: Ints
    topic_of: Ints
    topic_low: Ints
    topic_high: Ints

    def held(self, rows: Rows) -> Mask:
        """(P, B) which brokers hold which partition."""
        held = np.zeros((len(rows), len(self.gives)), bool)
        real = rows != NONE
        held[np.nonzero(real)[0], rows[real]] = True
        return held

    def copied(self, rows: Rows) -> tuple[float, int]:
        """Bytes and replicas on brokers that did not hold them."""
        new = self.held(rows) & ~self.held(self.rows)
        return float(self.size @ new.sum(axis=1)), int(new.sum())

    def excess(self, rows: Rows) -> Floats:
        """(K, B) how far brokers are beyond their bands, in shares."""
        load = self.weights @ self.held(rows)
        off = np.maximum(np.maximum(load - self.high, self.low - load), 0)
        found: Floats = np.where(self.gives, off / np.maximum(self.share, 1.0), 0.0)
        return found

    def broken(self, rows: Rows) -> list[str]:
        """The hard rules that a plan breaks."""
        before, after = self.held(self.rows), self.held(rows)
        new, problems = after & ~before, []
        if (after.sum(axis=1) != before.sum(axis=1)).any():
            problems.append("replication factor")
        if new[:, ~self.takes].any():
            problems.append("a broker that takes nothing")
        if (self.size @ new > self.headroom).any():
            problems.append("disk")
        for low, high, now, was, name in (self._in_racks(after), self._of_topics(after)):
            if ((now > np.maximum(high, was)) | (now < np.minimum(low, was))).any():
                problems.append(name)
        return problems

    def _in_racks(self, after: Mask) -> tuple[Ints, Ints, Ints, Ints, str]:
        low, high = self.rack_ends()
        racks = np.eye(int(self.rack.max()) + 1, dtype=np.int64)[self.rack]
        now, was = (np.asarray(of @ racks) for of in (after, self.held(self.rows)))
        return low, high, now, was, "racks"

    def _of_topics(self, after: Mask) -> tuple[Ints, Ints, Ints, Ints, str]:
        mine = self.topic_of[None, :] == np.arange(len(self.topic_high))[:, None]
        now, was = (np.asarray(mine.astype(np.int64) @ of) for of in (after, self.held(self.rows)))
        return self.topic_low, self.topic_high, now, was, "topics"

    def rack_ends(self) -> tuple[Ints, Ints]:
        """(P, racks) the fewest and the most replicas of each partition, by water-filling."""
        brokers = np.bincount(self.rack[self.takes], minlength=int(self.rack.max()) + 1)
        levels = np.arange(int(brokers.max()) + 2)
        filled = np.minimum(brokers[None, :], levels[:, None]).sum(axis=1)
        count = (self.rows != NONE).sum(axis=1)
        level = (filled[None, :] <= count[:, None]).sum(axis=1) - 1
        fewest = np.minimum(brokers[None, :], level[:, None])
        more = (filled[level] < count)[:, None]
        return fewest, np.minimum(brokers[None, :], level[:, None] + more)


@dataclass(frozen=True)
class Optimum:
    """What the solver found, and what no plan undercuts.

    :ivar excess: sum of all brokers beyond their bands, in shares.
    :ivar bytes, moves: copied by the best plan; None = none was found in time.
    :ivar bytes_bound, moves_bound: no plan copies less.
    """

    excess: float
    excess_bound: float
    bytes: float | None
    bytes_bound: float
    moves: int | None
    moves_bound: float
    seconds: float

    def row(self) -> dict[str, Any]:
        """As a row of JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Solved:
    value: float | None
    bound: float


class _Program:
    """Variables: whether broker b holds partition p, then the excess of each band."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._count, self._brokers = len(goal.rows), len(goal.gives)
        self._held = goal.held(goal.rows)
        places = self._count * self._brokers
        self._place = np.arange(places).reshape(self._count, self._brokers)
        banded = np.isfinite(goal.high).any(axis=1)
        self._resources = np.flatnonzero(banded)
        self._beyond = places + np.arange(len(self._resources) * self._brokers).reshape(
            len(self._resources), self._brokers
        )
        self._rows: list[tuple[Ints, Floats]] = []
        self._least: list[float] = []
        self._most: list[float] = []
        self._upper = np.concatenate([np.ones(places), np.full(self._beyond.size, np.inf)])
        self._lower = np.zeros(len(self._upper))
        self._rules()
        self._bands()

    def limit(self, columns: Ints, values: Floats, least: float, most: float) -> None:
        """One constraint."""
        self._rows.append((columns, values))
        self._least.append(least)
        self._most.append(most)

    def _rules(self) -> None:
        goal, held = self._goal, self._held
        fixed = np.zeros(held.shape, bool)
        fixed[:, ~goal.takes] |= ~held[:, ~goal.takes]
        self._upper[self._place[fixed]] = 0
        kept = held & ~goal.gives
        self._lower[self._place[kept]] = 1
        fewest, most = goal.rack_ends()
        in_rack = [np.flatnonzero(goal.rack == number) for number in range(fewest.shape[1])]
        for p in range(self._count):
            count = float(held[p].sum())
            self.limit(self._place[p], np.ones(self._brokers), count, count)
            for number, mine in enumerate(in_rack):
                if len(mine) < self._brokers and (len(mine) > 1 or fewest[p, number]):
                    now = int(held[p, mine].sum())
                    ends = min(fewest[p, number], now), max(most[p, number], now)
                    self.limit(self._place[p, mine], np.ones(len(mine)), *ends)
        for b in np.flatnonzero(goal.headroom < UNLIMITED).tolist():
            room = max(float(goal.headroom[b]), 1.0)
            self.limit(self._place[:, b], goal.size * ~held[:, b] / room, 0, 1)
        for topic in range(len(goal.topic_high)):
            mine = np.flatnonzero(goal.topic_of == topic)
            now = held[mine].sum(axis=0)
            low = np.minimum(goal.topic_low[topic], now)
            high = np.maximum(goal.topic_high[topic], now)
            for b in np.flatnonzero((low > 0) | (high < len(mine))).tolist():
                ends = float(max(low[b], 0)), float(min(high[b], len(mine)))
                self.limit(self._place[mine, b], np.ones(len(mine)), *ends)

    def _bands(self) -> None:
        goal = self._goal
        for n, k in enumerate(self._resources.tolist()):
            for b in np.flatnonzero(goal.gives).tolist():
                unit = max(float(goal.share[k, b]), 1.0)
                columns = np.append(self._place[:, b], self._beyond[n, b])
                weight = goal.weights[k] / unit
                self.limit(columns, np.append(weight, -1.0), -np.inf, goal.high[k, b] / unit)
                self.limit(columns, np.append(weight, 1.0), goal.low[k, b] / unit, np.inf)

    def solve(self, objective: Floats, seconds: float) -> _Solved:
        """The least value of an objective (of all variables), as far as it is found in time."""
        columns = np.concatenate([columns for columns, _ in self._rows])
        data = np.concatenate([np.asarray(values, float) for _, values in self._rows])
        starts = np.cumsum([0, *(len(columns) for columns, _ in self._rows)])
        shape = len(self._rows), len(self._upper)
        whole = np.arange(len(self._upper)) < self._place.size
        solved = milp(
            objective,
            constraints=LinearConstraint(
                csr_array((data, columns, starts), shape=shape), self._least, self._most
            ),
            integrality=whole.astype(int),
            bounds=Bounds(self._lower, self._upper),
            options={"time_limit": seconds, "mip_rel_gap": 0.001},
        )
        bound = solved.mip_dual_bound
        return _Solved(
            None if solved.fun is None else float(solved.fun),
            0.0 if bound is None or not np.isfinite(bound) else float(bound),
        )

    def beyond(self) -> Floats:
        """Objective: the sum of all excess."""
        return np.concatenate([np.zeros(self._place.size), np.ones(self._beyond.size)])

    def copies(self, each: Floats) -> Floats:
        """Objective: copies, each partition's with a price of its own."""
        price = each[:, None] * ~self._held
        return np.concatenate([price.ravel(), np.zeros(self._beyond.size)])

    def at_most(self, objective: Floats, most: float) -> None:
        """One more constraint: an objective is not exceeded."""
        columns = np.flatnonzero(objective)
        if len(columns):
            self.limit(columns, objective[columns], -np.inf, most)


def optimum(goal: Goal, seconds: float, *, reached: float) -> Optimum:
    """The best plan that is found.

    :param seconds: for each of the three questions.
    :param reached: excess that some plan is known to reach.
    """
    began = time.monotonic()
    program = _Program(goal)
    excess = bound = 0.0
    if reached > EVEN:
        solved = program.solve(program.beyond(), seconds)
        excess = reached if solved.value is None else min(solved.value, reached)
        bound = solved.bound
    program.at_most(program.beyond(), excess + EVEN)
    mean = max(float(goal.size.mean()), 1.0)
    bytes_each = program.copies(goal.size / mean)
    fewest = program.solve(bytes_each, seconds)
    moves = _Solved(None, 0.0)
    if fewest.value is not None:
        program.at_most(bytes_each, fewest.value * MORE_BYTES + EVEN)
        moves = program.solve(program.copies(np.ones(len(goal.rows))), seconds)
    return Optimum(
        excess=round(excess, 6),
        excess_bound=round(bound, 6),
        bytes=None if fewest.value is None else round(fewest.value * mean),
        bytes_bound=round(fewest.bound * mean),
        moves=None if moves.value is None else round(moves.value),
        moves_bound=round(moves.bound, 3),
        seconds=round(time.monotonic() - began, 1),
    )
