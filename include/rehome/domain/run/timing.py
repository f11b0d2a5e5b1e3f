"""How soon Airflow acted in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from rehome.domain.run.progress import ProgressSample

LONGEST_WAKE = timedelta(seconds=120)
"""A longer silence was an outage, not the time that Airflow needs."""


@dataclass(frozen=True, slots=True)
class RunTiming:
    """What one run has shown.

    :param start_s: from taking the cluster to the first reassignment.
    :param wake_s: from the trigger's poll that found something to do to that of the worker: the
        median over the run; None where there was no such poll.
    """

    start_s: float
    wake_s: float | None


def timing_of(
    started_at: datetime,
    first_move_at: datetime,
    ended_at: datetime,
    samples: Sequence[ProgressSample],
) -> RunTiming:
    """What a run that is over shows of Airflow.

    :param first_move_at: when the first of its reassignments was journalled.
    :param samples: of its newest polls, oldest first. A worker's step polls by itself, and what
        it settles shows at the next poll, or in the plan's end.
    """
    wakes: list[float] = []
    for at in range(1, len(samples)):
        before, step = samples[at - 1], samples[at]
        last = at + 1 == len(samples)
        acted = last or samples[at + 1].moves_done != step.moves_done
        silence = step.sampled_at - before.sampled_at
        if acted and silence <= LONGEST_WAKE and before.moves_done == step.moves_done:
            wakes.append(silence.total_seconds())
    start_s = (first_move_at - started_at).total_seconds()
    return RunTiming(max(start_s, 0.0), median(wakes) if wakes else None)
