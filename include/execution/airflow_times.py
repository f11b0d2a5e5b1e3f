"""How soon Airflow acts on this installation: measured in the runs that are over. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from include.domain.time_range import TimeRange
from include.execution.model import ProgressSample
from include.execution.trend import WINDOW
from include.settings import FIRST_POLL_S, Settings

ENOUGH_RUNS = 3
"""From so many runs on only what was measured counts."""
SPREAD = 1.25
"""A run may be slower than the slowest one of the last, by this factor."""
LEAST_WAKE_S = 0.5
"""Without any run to go by, an idle scheduler brings a task to a worker no sooner."""


@dataclass(frozen=True, slots=True)
class RunTiming:
    """What one run has shown.

    :param start_s: from taking the cluster to the first reassignment.
    :param wake_s: from the trigger's look that found something to do to that of the worker: the
        median over the run; None where there was no such look.
    """

    start_s: float
    wake_s: float | None


@dataclass(frozen=True, slots=True)
class AirflowTimes:
    """What is to be reckoned with.

    :param start_s: from taking the cluster to the first reassignment: throttles are set, and the
        next task starts.
    :param wake_s: from the trigger's look to that of the worker.
    :param poll_interval_s: between two looks of the trigger.
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


def timing_of(
    started_at: datetime,
    first_move_at: datetime,
    ended_at: datetime,
    samples: Sequence[ProgressSample],
) -> RunTiming:
    """What a run that is over tells of Airflow.

    :param first_move_at: when the first of its reassignments was journalled.
    :param samples: of its newest looks, oldest first. A worker's step looks by itself, and what
        it settles shows at the next look, or in the plan's end.
    """
    wakes: list[float] = []
    for at in range(1, len(samples)):
        before, step = samples[at - 1], samples[at]
        last = at + 1 == len(samples)
        acted = last or samples[at + 1].moves_done != step.moves_done
        silence = step.sampled_at - before.sampled_at
        if acted and silence <= WINDOW and before.moves_done == step.moves_done:
            wakes.append(silence.total_seconds())
    start_s = (first_move_at - started_at).total_seconds()
    return RunTiming(max(start_s, 0.0), median(wakes) if wakes else None)
