"""When to give up waiting for a cluster to show something: for lack of progress, nothing else.

How long an answer may take is bounded by each request. How long all of them take depends on how
many topics and brokers there are and how slow they are, so nothing here is bounded as a whole.
"""

from __future__ import annotations

from rehome.domain.clock import monotonic_s, sleep

READINGS_WITHOUT_NEWS = 3
"""So many readings in a row must have shown nothing new, however long each of them took."""


class ProgressTimeout:
    """Counts time from the first answer on, and again from each that shows progress.

    :param limit_s: how long nothing new may be shown, in :data:`READINGS_WITHOUT_NEWS` readings
        at least.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: float | None = None
        self._looks = 0

    def note_answer(self, *, progress: bool) -> None:
        """An answer has come; the first one is progress in any case."""
        if progress or self._since is None:
            self._since, self._looks = monotonic_s(), 0
        else:
            self._looks += 1

    @property
    def exhausted(self) -> bool:
        """Whether nothing has come closer for too long."""
        if self._since is None or self._looks < READINGS_WITHOUT_NEWS:
            return False
        return monotonic_s() - self._since >= self._limit_s


def now_s() -> float:
    """A clock that only ever goes on, in seconds."""
    return monotonic_s()


def pause(seconds: float) -> None:
    """Wait before the next reading."""
    sleep(seconds)
