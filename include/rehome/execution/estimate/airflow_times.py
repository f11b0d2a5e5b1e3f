"""How soon Airflow acts on this installation: measured in the runs that are over. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rehome.domain.run.timing import RunTiming
from rehome.domain.time_range import TimeRange
from rehome.settings import FIRST_POLL_S, Settings

ENOUGH_RUNS = 3
"""Number of measured runs from which on the settings' expectations no longer count."""
SPREAD = 1.25
"""By this factor a run may be slower than the slowest of those measured."""
LEAST_WAKE_S = 0.5
"""The least time in which an idle scheduler starts a task; used while no run has been measured."""


@dataclass(frozen=True, slots=True)
class AirflowTimes:
    """The times to expect.

    :param start_s: from taking the cluster to the first reassignment: throttles are set, and the
        next task starts.
    :param wake_s: from the trigger's poll to that of the worker.
    :param poll_interval_s: between two polls of the trigger.
    :param runs: how many were measured; of fewer than :data:`ENOUGH_RUNS`, what the settings expect
        counts, too.
    """

    start_s: TimeRange
    wake_s: TimeRange
    poll_interval_s: float
    runs: int = 0

    @property
    def step_s(self) -> TimeRange:
        """From one step of the worker to the next, while moves wait for free slots."""
        first_poll_s = max(FIRST_POLL_S, self.poll_interval_s)
        return TimeRange(
            first_poll_s + self.wake_s.least_s,
            first_poll_s + self.poll_interval_s + self.wake_s.most_s,
        )

    @property
    def end_s(self) -> TimeRange:
        """From the end of the last copy until the ledger holds the plan's end."""
        first_poll_s = max(FIRST_POLL_S, self.poll_interval_s)
        return TimeRange(self.wake_s.least_s, first_poll_s + self.wake_s.most_s)


def airflow_times(timings: Sequence[RunTiming], settings: Settings) -> AirflowTimes:
    """By the runs that are over, and where these are few, by what the settings say of a wake."""
    starts = [timing.start_s for timing in timings]
    wakes = [timing.wake_s for timing in timings if timing.wake_s is not None]
    expected = TimeRange(LEAST_WAKE_S, 2 * settings.wake_s)
    return AirflowTimes(
        _range(starts, expected), _range(wakes, expected), settings.poll_interval_s, len(timings)
    )


def _range(measured: Sequence[float], expected: TimeRange) -> TimeRange:
    if len(measured) >= ENOUGH_RUNS:
        return TimeRange(min(measured), SPREAD * max(measured))
    most = [SPREAD * seconds for seconds in measured]
    return TimeRange(min([expected.least_s, *measured]), max([expected.most_s, *most]))
