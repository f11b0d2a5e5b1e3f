"""The budget of work of a search: counted steps instead of seconds, so that a plan does not depend
on the machine's speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """What counts as work, and the budget of a search.

    :param per_scoring: work of scoring any number of trades at once, in addition to 1 per trade. A
        search spends about as much time on a thousand scorings of few trades as on ten million
        trades: measured over the clusters of ``make bench-people``, work and seconds of the
        processor correlate by 0.95.
    :param least: budget of a small cluster: about a second of processor.
    :param per_replica: the same of each replica, where that is more.
    :param per_broker: the same of each broker: brokers come into their bands one by one.
    :param most_per_replica: the most that brokers bring, per replica: where each holds few.
    :param most_in_all: budgets that a search may take together with what counts beside its phases.
    :param per_filled: of finding a broker for one replica; ``per_unplaced``: the same where none
        of those in want takes it; ``per_checked``: of one trade, whether rules allow it;
        ``per_led``: of a partition in one round of the balance of leaders. These count beside the
        phases of a search, see :meth:`SearchWork.count_beside`.
    """

    per_scoring: int = 10_000
    least: float = 80e6
    per_replica: float = 1_000.0
    per_broker: float = 1.5e6
    most_per_replica: float = 8_000.0
    most_in_all: float = 2.0
    per_filled: int = 1_000
    per_unplaced: int = 3_000
    per_checked: int = 40
    per_led: int = 12


SEARCH_WORK = WorkOptions()


def budget_of_work(replicas: int, brokers: int = 0, times: float = 1.0) -> float:
    """The budget for a cluster of so many replicas.

    :param brokers: that come into their bands one by one; 0 = the search goes by replicas alone.
    :param times: how many times as much as usual.
    """
    of = SEARCH_WORK
    by_brokers = min(of.per_broker * brokers, of.most_per_replica * replicas)
    return max(of.least, of.per_replica * replicas, by_brokers) * times


class SearchWork:
    """Counts the work of a search, and ends it when its budget is spent.

    :ivar done: work of the phases so far; ``beside``: other work so far; ``cut``: whether some
        phase of the search ended early for it.
    """

    def __init__(self, budget: float = inf) -> None:
        self.done, self.beside, self.cut = 0.0, 0.0, False
        self.budget = self._limit = budget

    def score(self, trades: int) -> None:
        """Count one scoring of so many trades."""
        self.done += SEARCH_WORK.per_scoring + trades

    def count(self, work: float) -> None:
        """Count other work."""
        self.done += work

    def count_beside(self, work: float) -> None:
        """Count work that no phase of a search gets less for: how much it is depends on what they
        leave to it. Once all work together is ``most_in_all`` budgets, nothing is begun again.
        """
        self.beside += work

    def is_used_up(self) -> bool:
        """Whether no more is to be begun again: all work counts, also that beside the phases."""
        over = self.done + self.beside >= SEARCH_WORK.most_in_all * self.budget
        self.cut |= over
        return over

    def allows(self, work: float) -> bool:
        """Whether the phase that asks may do so much at once. What does not begin cuts nothing."""
        return self.done + work <= self._limit

    def is_spent(self) -> bool:
        """Whether the phase that asks has to end now."""
        over = self.done >= self._limit
        self.cut |= over
        return over

    @contextmanager
    def at_most(self, part: float) -> Iterator[None]:
        """Allow what runs inside only this fraction of what is left."""
        before = self._limit
        self._limit = min(before, self.done + part * max(before - self.done, 0.0))
        try:
            yield
        finally:
            self._limit = before
