"""Cut a plan to a movement budget.

Greedy knapsack: partitions are taken in the order of excess removed per byte copied (a move's
overhead included), and ranked again as brokers approach their bands. A part of a valid plan is
valid, because the spread rule applies per partition and disk space is checked as if nothing had
been deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import is_new
from rehome.planning.search.state import Problem, Search


@dataclass(frozen=True, slots=True)
class BudgetCutOptions:
    """How often what is left of a plan is ranked again.

    :param parts: in each round, one of so many parts of what is left is taken, the best ones.
    :param rounds: the most rounds.
    """

    parts: int = 64
    rounds: int = 256


BUDGET_CUT = BudgetCutOptions()


def budget_of(request: ReassignmentRequest) -> Floats:
    """(2,) bytes and replicas that may be copied; infinite = any number."""
    limits = (request.budget_bytes, request.budget_moves)
    return np.array([np.inf if limit is None else float(limit) for limit in limits])


def keep_within_budget(problem: Problem, budget: Floats) -> bool:
    """Take moves back, in place, until the plan is within the budget. Returns whether any was taken
    back.

    :param budget: (2,) bytes and replicas that may be copied.
    """
    layout = problem.layout
    copies = is_new(layout.rows, layout.origin).sum(axis=1)
    planned = np.flatnonzero(copies)
    size = layout.size.astype(float)
    costs = np.stack([copies * size, copies.astype(float)])
    if (costs.sum(axis=1) <= budget).all():
        return False
    target_rows = layout.rows.copy()
    layout.rows[planned] = layout.origin[planned]
    layout.refresh()
    search = Search(problem)
    left, costs = budget, costs[:, planned]
    changes = _Changes.of(search, target_rows, planned)
    for _ in range(BUDGET_CUT.rounds):
        paid: Mask = np.all(costs <= left[:, None], axis=0)
        planned, costs, changes = planned[paid], costs[:, paid], changes.only(paid)
        gain = changes.gain(search)
        score = gain / (costs[0] + problem.overhead_bytes * costs[1] + 1)
        order = _highest(score, gain > 0, max(1, len(planned) // BUDGET_CUT.parts))
        if not len(order):
            break
        sums = np.cumsum(costs[:, order], axis=1)
        chosen = order[(sums <= left[:, None]).all(axis=0)]
        left = left - costs[:, chosen].sum(axis=1)
        _set(search, target_rows, planned[chosen])
        others = np.ones(len(planned), bool)
        others[chosen] = False
        planned, costs, changes = planned[others], costs[:, others], changes.only(others)
    layout.refresh()
    return True


def _highest(score: Floats, eligible: Mask, count: int) -> Ints:
    """Indexes of the highest scores among the eligible, highest first; ties in index order."""
    candidates = np.flatnonzero(eligible)
    if len(candidates) > count:
        least = np.partition(-score[candidates], count - 1)[count - 1]
        candidates = candidates[-score[candidates] <= least]
    highest: Ints = candidates[np.argsort(-score[candidates], kind="stable")][:count]
    return highest


def _changes(search: Search, target_rows: Rows, partitions: Ints) -> tuple[Ints, Ints]:
    """The replicas that move, and their targets."""
    places = np.arange(search.width)
    replicas = (partitions[:, None] * search.width + places).ravel()
    targets = target_rows[partitions].ravel().astype(np.int64)
    moved = (search.flat[replicas] != targets) & (targets != NONE)
    return replicas[moved], targets[moved]


@dataclass(frozen=True, slots=True)
class _Changes:
    """The changes of partitions that have not been taken yet.

    :param count: number of partitions; ``place``: (n,) index of the partition of each change,
        ascending.
    :param replicas: (n,) that move from ``source`` to ``target``.
    :param weight: (K, n) load of these replicas.
    """

    count: int
    place: Ints
    replicas: Ints
    source: Ints
    target: Ints
    weight: Floats

    @classmethod
    def of(cls, search: Search, target_rows: Rows, partitions: Ints) -> Self:
        """The changes of these partitions, which are ascending."""
        replicas, targets = _changes(search, target_rows, partitions)
        place = np.searchsorted(partitions, replicas // search.width)
        return cls(
            len(partitions),
            place,
            replicas,
            search.holders(replicas),
            targets,
            search.weight(replicas),
        )

    def only(self, partitions: Mask) -> Self:
        """Those of some of the partitions."""
        if partitions.all():
            return self
        kept = partitions[self.place]
        number = np.cumsum(partitions) - 1
        return replace(
            self,
            count=int(partitions.sum()),
            place=number[self.place[kept]],
            replicas=self.replicas[kept],
            source=self.source[kept],
            target=self.target[kept],
            weight=self.weight[:, kept],
        )

    def gain(self, search: Search) -> Floats:
        """(count,) excess removed by moving each partition alone."""
        source, target = self.source, self.target
        now = search.excess(slice(None), search.load)
        gain = (
            now[source]
            - search.excess(source, search.load[:, source] - self.weight)
            + now[target]
            - search.excess(target, search.load[:, target] + self.weight)
        )
        if search.topic_counts:
            gain -= search.unit * search.topic_counts.moving(
                self.replicas // search.width, source, target
            )
        return np.bincount(self.place, gain, self.count).astype(float)


def _set(search: Search, target_rows: Rows, partitions: Ints) -> None:
    replicas, targets = _changes(search, target_rows, partitions)
    search.lift(replicas)
    search.put(replicas, targets)
