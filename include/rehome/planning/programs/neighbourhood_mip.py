"""Large neighbourhood search (LNS): re-place the replicas of three brokers by a mixed-integer
program.

Local search trades one or two replicas at a time. If bands are narrow, or a partition is about as
large as a band, no such trade helps although several at once would. The replicas of three brokers
are few enough for an exact solution. Solving one triple of brokers after the other comes close to
solving for all brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack, vstack

from rehome.domain.array_types import NONE, UNLIMITED, Floats, Ints, Mask, Rows
from rehome.planning.programs.flow_lp import FLOW, elastic
from rehome.planning.search.state import Problem, Search


@dataclass(frozen=True, slots=True)
class NeighbourhoodOptions:
    """How many programs are solved, and how exactly.

    :param most_brokers: the most brokers for which triples are formed: there are B³ / 6.
    :param most_programs: the most triples that are solved.
    :param most_futile: the most in a row without a gain.
    :param nodes: limit of the branch-and-bound search, in nodes.
    :param gap: its relative gap.
    :param margin: loads stay this far inside the bands, in shares, because the solver's tolerance
        is larger than the planner's.
    """

    most_brokers: int = 40
    most_programs: int = 150
    most_futile: int = 30
    nodes: int = 100
    gap: float = 0.001
    margin: float = 2e-6


NEIGHBOURHOODS = NeighbourhoodOptions()


def search_neighbourhoods(problem: Problem) -> None:
    """Solve one triple after the other, in place, as long as the objective improves.

    Triples that copy most among each other, or have the most excess, come first.
    """
    search, layout = Search(problem), problem.layout
    stay = np.flatnonzero(problem.gives & ~problem.leaving)
    if len(stay) > NEIGHBOURHOODS.most_brokers:
        return
    triples = np.array(list(combinations(stay.tolist(), 3)), np.int64).reshape(-1, 3)
    changed = np.zeros(len(problem.gives), np.int64)  # how often each broker was
    tried: dict[tuple[int, ...], tuple[int, ...]] = {}
    in_vain = 0
    for _ in range(NEIGHBOURHOODS.most_programs):
        chosen = _most_promising(search, triples, changed, tried)
        if chosen is None or in_vain >= NEIGHBOURHOODS.most_futile:
            return
        tried[tuple(chosen.tolist())] = tuple(changed[chosen].tolist())
        in_vain += 1
        placed = Neighbourhood(search, chosen).solve()
        if placed is None:
            continue
        before, objective = layout.rows.copy(), search.objective()
        layout.lay_out(placed)
        after = Search(problem)
        # By the solver's tolerance a full disk may be exceeded by a byte.
        if after.objective() < objective and not len(layout.overfull()):
            search, in_vain = after, 0
            changed[chosen] += 1
        else:
            layout.lay_out(before)


def _most_promising(
    search: Search,
    triples: Ints,
    changed: Ints,
    tried: dict[tuple[int, ...], tuple[int, ...]],
) -> Ints | None:
    """The triple with the most to gain, of those with a broker that changed since they were solved;
    None = no such triple.
    """
    between = _copied_between(search)
    outside = search.excess(slice(None), search.load) * search.problem.gives
    a, b, c = triples.T
    gain = between[a, b] + between[a, c] + between[b, c]
    gain += FLOW.missed * outside[triples].sum(axis=1)
    for at in np.argsort(-gain, kind="stable").tolist():
        if gain[at] <= 0:
            return None
        triple = triples[at]
        if tried.get(tuple(triple.tolist())) != tuple(changed[triple].tolist()):
            chosen: Ints = triple
            return chosen
    return None


def _copied_between(search: Search) -> Floats:
    """(B, B) bytes copied between pairs of brokers (from the one that gives a replica up), both
    directions added, in shares.

    If a partition loses several replicas, each counts as a possible source of each copy.
    """
    brokers = len(search.problem.gives)
    copied = np.zeros((brokers, brokers))
    copies = search.copies()
    partition, target = copies // search.width, search.holders(copies)
    size = search.weights[0][partition] / max(float(search.share[0].mean()), 1.0)
    rows = search.rows[partition]
    for origin in search.origin[partition].T.astype(np.int64):
        gone = (origin != NONE) & ~(rows == origin[:, None]).any(axis=1)
        np.add.at(copied, (origin[gone], target[gone]), size[gone])
    return copied + copied.T


class Neighbourhood:
    """The program of one triple. Each option is a possible row for one partition.

    :ivar partition, rows: (n,), (n, R) partition and row of each option; ``now``: (n,) whether it
        is the present row.
    :ivar holds, copies: (n, 3) whether the option has a replica on each of the three brokers, and
        whether that is a copy.
    """

    def __init__(self, search: Search, brokers: Ints) -> None:
        self._search, self.brokers = search, brokers
        self.partition, self.rows = self._options()
        row = search.rows[self.partition]
        self.now: Mask = (self.rows == row).all(axis=1)
        even = search.problem.tree.violations(self.rows) == 0
        self._keep((even & self._allowed_targets()) | self.now)
        holds = (self.rows[:, :, None] == brokers).any(axis=1)
        held_before = (search.origin[self.partition][:, :, None] == brokers).any(axis=1)
        self.holds, self.copies = holds.astype(float), (holds & ~held_before).astype(float)

    def _options(self) -> tuple[Ints, Rows]:
        """All ways to place each partition's replicas of the triple on the triple."""
        search, triple = self._search, set(self.brokers.tolist())
        is_on_triple = np.isin(search.rows, self.brokers).any(axis=1) & search.problem.partitions
        partitions, rows = [], []
        for p in np.flatnonzero(is_on_triple).tolist():
            row = search.rows[p].tolist()
            there = [broker for broker in row if broker in triple]
            for targets in combinations(sorted(triple), len(there)):
                partitions.append(p)
                rows.append(_with(row, set(there), targets))
        shape = len(partitions), search.width
        return np.array(partitions, np.int64), np.array(rows, np.int32).reshape(shape)

    def _allowed_targets(self) -> Mask:
        """(n,) options that use only brokers that receive, or that held the partition in the
        snapshot.
        """
        search = self._search
        before = search.origin[self.partition][:, :, None] == self.rows[:, None, :]
        stays = self.rows == search.rows[self.partition]
        takes = np.append(search.problem.takes, True)[self.rows]  # the last one is that of NONE
        willing: Mask = (takes | stays | before.any(axis=1)).all(axis=1)
        return willing

    def _keep(self, some: Mask) -> None:
        self.partition, self.rows, self.now = self.partition[some], self.rows[some], self.now[some]

    def solve(self) -> Rows | None:
        """(P, R) the rows with the best options; None = no solution was found."""
        search, problem = self._search, self._search.problem
        options, unit = len(self.partition), max(float(search.share[0].mean()), 1.0)
        if not options:
            return None
        size = search.weights[0][self.partition]
        load, low, high = self._bands_of_options()
        missed = 2 * len(low)
        limits, most = [elastic(load)], [high, -low]
        headroom = problem.layout.headroom[self.brokers]
        if (headroom < UNLIMITED).any():
            copied = self.copies * size[:, None]
            others = problem.layout.incoming[self.brokers] - copied[self.now].sum(axis=0)
            limits.append(hstack([csr_array(copied.T / unit), csr_array((3, missed))]))
            most.append((headroom - others) / unit)
        _, number = np.unique(self.partition, return_inverse=True)
        once = csr_array(
            (np.ones(options), (number, np.arange(options))), (number.max() + 1, options + missed)
        )
        cost = self.copies.sum(axis=1) * (size + problem.overhead_bytes) / unit
        solved = milp(
            np.r_[cost, np.full(missed, FLOW.missed)],
            integrality=np.arange(options + missed) < options,
            bounds=Bounds(0, np.r_[np.ones(options), np.full(missed, np.inf)]),
            constraints=[
                LinearConstraint(vstack(limits).tocsr(), -np.inf, np.concatenate(most)),
                LinearConstraint(once, 1, 1),
            ],
            options={"node_limit": NEIGHBOURHOODS.nodes, "mip_rel_gap": NEIGHBOURHOODS.gap},
        )
        if solved.x is None:
            return None
        chosen = solved.x[:options] > 0.5
        rows = search.rows.copy()
        rows[self.partition[chosen]] = self.rows[chosen]
        return rows

    def _bands_of_options(self) -> tuple[csr_array, Floats, Floats]:
        """(m, n) contribution of each option to each load that has a band, and the limits of the
        sum, in shares.
        """
        search, brokers = self._search, self.brokers
        weight = search.weights[:, self.partition]
        load, low, high = [], [], []
        for resource, column in np.argwhere(search.scale[:, brokers] > 0).tolist():
            broker, scale = brokers[column], search.scale[resource, brokers[column]]
            adds = self.holds[:, column] * weight[resource] * scale
            others = search.load[resource, broker] * scale - adds[self.now].sum()
            load.append(adds)
            low.append(search.low[resource, broker] * scale - others + NEIGHBOURHOODS.margin)
            high.append(search.high[resource, broker] * scale - others - NEIGHBOURHOODS.margin)
        for adds, least, most in self._spread():
            load.append(adds)
            low.append(least)
            high.append(most)
        return csr_array(np.array(load)), np.array(low), np.array(high)

    def _spread(self) -> Iterator[tuple[Floats, float, float]]:
        """The same for the topic bands of each broker."""
        search, counts = self._search, self._search.topic_counts
        if counts is None:
            return
        topic = counts.topic(self.partition)
        for t in np.unique(topic[counts.has_bands(self.partition)]).tolist():
            for column, broker in enumerate(self.brokers.tolist()):
                adds = self.holds[:, column] * (topic == t)
                cell = t * counts.brokers + broker
                others = counts.replicas[cell] - adds[self.now].sum()
                least, most = counts.low[cell] - others, counts.high[cell] - others
                yield adds * search.unit, least * search.unit, most * search.unit


def _with(row: list[int], there: set[int], targets: tuple[int, ...]) -> list[int]:
    """The row with replicas on the wanted brokers instead of those ``there``; replicas that stay
    keep their position.
    """
    is_new = iter([broker for broker in targets if broker not in there])
    return [next(is_new) if b in there and b not in targets else b for b in row]
