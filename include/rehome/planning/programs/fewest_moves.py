"""Fewer moves for nearly the same bytes, by an integer program over a few promising changes.

Where one large replica would do, a search that makes and undoes single copies ends with several
small ones: no trade leads from these to that. So the plan of a small cluster is made anew. A
*change* moves one replica of a partition away from its brokers in the snapshot. A linear program
with column generation finds which changes are worth a variable: those of its solution, and those of
the least reduced cost. An integer program over these few finds a plan with fewer moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array, vstack

from rehome.domain.array_types import NONE, UNLIMITED, Floats, Ints, Mask, Rows
from rehome.planning.model.arrays import broker_sums, is_new
from rehome.planning.search.state import Problem, Search


@dataclass(frozen=True, slots=True)
class FewestMovesOptions:
    """Limits of the programs.

    :param rounds: how often changes are added to the linear program.
    :param added: how many are added at once.
    :param candidates: changes in the integer program, beside those of the linear program's solution
        and those of the plan.
    :param large, if_large: of clusters with more replicas than the first, or with bands of several
        resources, the second is the number of candidates: programs take longer there.
    :param gap: relative gap to a lower bound of moves, at which a plan stays, and the integer
        program ends.
    :param nodes: of the integer program's tree.
    :param most_cells: constraints times changes, up to which there is an integer program: of five
        larger ones, three found nothing in 2 s, and two saved a move in a hundred.
    :param first_price: moves that a share of load beyond a band counts before the first solution.
    :param margin: loads stay so far inside their bands, in shares, for the solver is less exact; a
        change is added if its reduced cost, in moves, is below zero by as much.
    """

    rounds: int = 6
    added: int = 600
    candidates: int = 250
    large: int = 800
    if_large: int = 150
    gap: float = 0.125
    nodes: int = 1
    most_cells: int = 100_000
    first_price: float = 1e3
    margin: float = 2e-6


FEWEST_MOVES = FewestMovesOptions()


def move_fewest(
    problem: Problem, most_bytes: float, options: FewestMovesOptions | None = None
) -> None:
    """Make the layout's moves fewer, in place. Without effect unless all bands are met.

    Knows neither caps nor broker sets.

    :param most_bytes: what all copies together may weigh.
    :param options: None = the usual ones.
    """
    layout, search = problem.layout, Search(problem)
    if search.outside() > 0:
        return
    moves, rows_before = len(search.copies()), layout.rows.copy()
    rows = FewestMoves(search, most_bytes, options or FEWEST_MOVES).solve()
    if rows is None:
        return
    layout.lay_out(rows)
    after = Search(problem)
    if after.outside() > 0 or len(after.copies()) >= moves or len(layout.overfull()):
        layout.lay_out(rows_before)


@dataclass(frozen=True)
class _Changes:
    """n changes of partitions. ``rows``: (n, R) brokers of each after it."""

    partition: Ints
    rows: Rows

    def and_(self, *others: _Changes) -> _Changes:
        """All of them, in order, each once."""
        together = _Changes(
            np.concatenate([self.partition, *(other.partition for other in others)]),
            np.concatenate([self.rows, *(other.rows for other in others)]),
        )
        _, first = np.unique(together.keys(), axis=0, return_index=True)
        return together.only(np.sort(first))

    def only(self, some: Ints | Mask) -> _Changes:
        return _Changes(self.partition[some], self.rows[some])

    def keys(self) -> Ints:
        """(n, 1 + R) equal for changes to the same brokers."""
        keys: Ints = np.column_stack([self.partition, np.sort(self.rows, axis=1)])
        return keys


@dataclass(frozen=True)
class _Posed:
    """A program: the fewest moves with ``least`` ≤ matrix · changes ≤ ``most``.

    :param moves: (n,) replicas that each change copies.
    :param number: (m,) of each constraint, among all of them.
    """

    matrix: csr_array
    least: Floats
    most: Floats
    moves: Floats
    number: Ints


class FewestMoves:
    """The programs of one cluster.

    All constraints, in this order: bands of brokers (K x B), bytes in all (1), space on brokers
    (B), bands of topics ((T + 1) x B, none without bands), and that a partition changes once (P).
    Loads are in shares.
    """

    def __init__(self, search: Search, most_bytes: float, options: FewestMovesOptions) -> None:
        problem, origin = search.problem, search.origin
        self._search, self._problem, self._options = search, problem, options
        self._brokers = len(problem.gives)
        unit = max(float(search.share[0].mean()), 1.0)
        self._size = problem.weights[0] / unit
        banded, scale = search.scale > 0, search.scale
        loads = np.stack([broker_sums(origin, of, self._brokers) for of in problem.weights])
        low, high = (np.where(banded, side, 0.0) for side in (search.low, search.high))
        slack = np.minimum(search.load - low, high - search.load) * scale
        margin = np.clip(slack, 0.0, options.margin)  # the plan as it is stays possible
        headroom = problem.layout.headroom
        least = [np.where(banded, (low - loads) * scale + margin, -np.inf).ravel()]
        most = [
            np.where(banded, (high - loads) * scale - margin, np.inf).ravel(),
            np.array([most_bytes / unit]),
            np.where(headroom < UNLIMITED, headroom / unit, np.inf),
        ]
        least.append(np.full(1 + self._brokers, -np.inf))
        counts, self._topics = search.topic_counts, search.topic_counts is not None
        if counts is not None and problem.spread is not None:
            before = problem.spread.counts(origin).reshape(-1)
            no_band = np.arange(len(before)) >= len(before) - self._brokers
            least.append(
                np.where(no_band, -np.inf, np.minimum(counts.low, counts.replicas) - before)
            )
            most.append(
                np.where(no_band, np.inf, np.maximum(counts.high, counts.replicas) - before)
            )
        has_to = np.append(problem.leaving, False)[origin].any(axis=1)
        least.append(np.where(has_to, 1.0, -np.inf))
        most.append(np.ones(len(origin)))
        self._least, self._most = np.concatenate(least), np.concatenate(most)
        sizes = [banded.size, 1, self._brokers, len(most[-2]) if self._topics else 0, len(origin)]
        self._bands, self._bytes, self._space, self._spread, self._once, _ = np.cumsum(
            [0, *sizes]
        ).tolist()

    def solve(self) -> Rows | None:
        """(P, R) rows with fewer moves; None = none were found."""
        search, options = self._search, self._options
        moved = np.flatnonzero(is_new(search.rows, search.origin).any(axis=1))
        now = _Changes(moved, search.rows[moved])
        candidates, parts, moves = now, np.zeros(len(moved)), 0.0
        prices = self._first_prices()
        for number in range(options.rounds):
            below = -options.margin if number else np.inf
            more = self._cheapest(prices, options.added, candidates, below)
            if not len(more.partition):
                break
            candidates = candidates.and_(more)
            solution = self._relax(self._pose(candidates))
            if solution is None:
                return None
            parts, prices, moves = solution
        if (1 - options.gap) * len(search.copies()) <= moves:
            return None
        core = now.and_(candidates.only(np.flatnonzero(parts > 0)))
        several = int(search.scale.any(axis=1).sum()) > 1 or search.flat.size > options.large
        count = options.if_large if several else options.candidates
        core = core.and_(self._cheapest(prices, count, core))
        return self._whole(core)

    def _first_prices(self) -> Floats:
        """Prices before the first solution: only of loads outside their bands."""
        prices = np.zeros(len(self._most))
        bands = slice(self._bands, self._bytes)
        lacks, exceeds = self._least[bands] > 0, self._most[bands] < 0
        prices[bands] = self._options.first_price * (lacks.astype(float) - exceeds)
        return prices

    def _cheapest(
        self, prices: Floats, count: int, candidates: _Changes, below: float = np.inf
    ) -> _Changes:
        """The changes with the least reduced cost, without those known."""
        search, problem = self._search, self._problem
        cost = self._reduced_costs(prices)
        self._search.work.score(cost.size)
        flat = cost.reshape(-1)
        some = np.flatnonzero(flat < below)
        tried = 3 * count + len(candidates.partition)
        if len(some) > tried:
            some = np.sort(some[np.argpartition(flat[some], tried)[:tried]])
        some = some[np.argsort(flat[some], kind="stable")]
        partition, position, broker = np.unravel_index(some, cost.shape)
        rows = search.origin[partition]
        rows[np.arange(len(rows)), position] = broker
        even = problem.tree.violations_of(partition, rows) == 0
        changes = _Changes(partition[even], rows[even])
        keys = set(map(tuple, candidates.keys().tolist()))
        new = [key not in keys for key in map(tuple, changes.keys().tolist())]
        return changes.only(np.flatnonzero(new)[:count])

    def _reduced_costs(self, prices: Floats) -> Floats:
        """(P, R, B) reduced cost of moving each replica to each broker; infinite if it may not
        move there.
        """
        search, problem, origin = self._search, self._problem, self._search.origin
        of_load = prices[self._bands : self._bytes].reshape(-1, self._brokers) * search.scale
        leaves = problem.weights.T @ of_load
        if search.topic_counts is not None:
            of_topic = prices[self._spread : self._once].reshape(-1, self._brokers)
            leaves = leaves + of_topic[search.topic_counts.topic(np.arange(len(origin)))]
        of_copy = prices[self._bytes] + prices[self._space : self._spread]
        arrives = leaves + self._size[:, None] * of_copy + prices[self._once :][:, None]
        real = np.where(origin == NONE, 0, origin)
        left = np.take_along_axis(leaves, real, axis=1)
        cost: Floats = 1 - arrives[:, None, :] + left[:, :, None]
        stays = (origin == NONE) | ~problem.gives[real] | ~problem.partitions[:, None]
        is_holder = np.zeros((len(origin), self._brokers + 1), bool)  # the last one is that of NONE
        is_holder[np.arange(len(origin))[:, None], origin] = True
        cost[stays[:, :, None] | (is_holder[:, :-1] | ~problem.takes)[:, None, :]] = np.inf
        return cost

    def _pose(self, changes: _Changes) -> _Posed:
        """The program over these changes, without constraints that none of them can break."""
        search, problem, count = self._search, self._problem, len(changes.partition)
        origin = search.origin[changes.partition]
        entries = [(self._once + changes.partition, np.arange(count), np.ones(count))]
        arrives, leaves = is_new(changes.rows, origin), is_new(origin, changes.rows)
        for mask, rows, sign in ((arrives, changes.rows, 1.0), (leaves, origin, -1.0)):
            column, position = np.nonzero(mask)
            partition, broker = changes.partition[column], rows[column, position].astype(np.int64)
            for k in np.flatnonzero(search.scale.any(axis=1)).tolist():
                load = sign * problem.weights[k][partition] * search.scale[k, broker]
                entries.append((self._bands + k * self._brokers + broker, column, load))
            if search.topic_counts is not None:
                cells = search.topic_counts.cells(partition, broker)
                entries.append((self._spread + cells, column, np.full(len(column), sign)))
            if mask is arrives:
                size = self._size[partition]
                entries.append((np.full(len(column), self._bytes), column, size))
                entries.append((self._space + broker, column, size))
        rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        matrix = coo_array((values, (rows, columns)), shape=(len(self._most), count)).tocsr()
        up, down = matrix.maximum(0).sum(axis=1), matrix.minimum(0).sum(axis=1)
        number = np.flatnonzero((up > self._most) | (down < self._least))
        least, most = self._least[number], self._most[number]
        return _Posed(matrix[number], least, most, arrives.sum(axis=1).astype(float), number)

    def _relax(self, posed: _Posed) -> tuple[Floats, Floats, float] | None:
        """The solution in parts of changes, the price of each constraint, and the moves; None if
        there is no solution.
        """
        below, above = np.flatnonzero(posed.most < np.inf), np.flatnonzero(posed.least > -np.inf)
        solved = linprog(
            posed.moves,
            A_ub=vstack([posed.matrix[below], -posed.matrix[above]]).tocsr(),
            b_ub=np.concatenate([posed.most[below], -posed.least[above]]),
            bounds=(0, None),
            method="highs",
        )
        if solved.x is None:
            return None
        prices = np.zeros(len(self._most))
        prices[posed.number[below]] += solved.ineqlin.marginals[: len(below)]
        prices[posed.number[above]] -= solved.ineqlin.marginals[len(below) :]
        return solved.x, prices, float(solved.fun)

    def _whole(self, changes: _Changes) -> Rows | None:
        """(P, R) rows of the best plan of these changes; None = none was found."""
        posed = self._pose(changes)
        if np.prod(posed.matrix.shape) > self._options.most_cells:
            return None
        solved = milp(
            posed.moves,
            integrality=np.ones(len(posed.moves)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(posed.matrix, posed.least, posed.most),
            options={"node_limit": self._options.nodes, "mip_rel_gap": self._options.gap},
        )
        if solved.x is None:
            return None
        rows, made = self._search.origin.copy(), solved.x > 0.5
        rows[changes.partition[made]] = changes.rows[made]
        return rows
