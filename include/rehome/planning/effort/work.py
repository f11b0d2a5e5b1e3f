"""The budget of work of a search: counted steps instead of seconds, so that a plan does not depend
on the machine's speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

PER_SCORING = 10_000
"""Work of scoring any number of trades at once, in addition to 1 per trade. A search spends about
as much time on a thousand scorings of few trades as on ten million trades: measured over the
clusters of ``make bench-people``, work and seconds of the processor correlate by 0.95.
"""

LEAST, PER_REPLICA = 80e6, 1_000.0
"""The budget of a search: about a second of processor for a small cluster; more for many
replicas.
"""

WHERE_THOROUGH = 50
"""How many times as much a thorough plan may spend."""


def budget_of_work(replicas: int, times: float = 1.0) -> float:
    """The budget for a cluster of so many replicas.

    :param times: how many times as much as usual.
    """
    return max(LEAST, PER_REPLICA * replicas) * times


class SearchWork:
    """Counts the work of a search, and ends it when its budget is spent.

    :ivar done: work so far; ``cut``: whether some phase of the search ended early for it.
    """

    def __init__(self, budget: float = inf) -> None:
        self.done, self.cut = 0.0, False
        self.budget = self._limit = budget

    def score(self, trades: int) -> None:
        """Count one scoring of so many trades."""
        self.done += PER_SCORING + trades

    def spent(self) -> bool:
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
