"""How soon somebody looks and starts the next moves: as it has been of late."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_low

from include.execution.model import ProgressSample

WINDOW = timedelta(minutes=2)


def measured_reaction_s(history: Sequence[ProgressSample], now: datetime, most_s: float) -> float:
    """Time from one step of the worker to the next: the median of the last two minutes.

    Where copies take longer, a step waits for one of them to end, and not for Airflow: then, and
    until there have been two steps, it is ``most_s``.

    :param history: samples of all looks, oldest first; where moves have ended, a step was made.
    :param most_s: what a poll and a wake take by the settings.
    """
    steps = [
        later.sampled_at
        for earlier, later in pairwise(history)
        if later.moves_done != earlier.moves_done and now - later.sampled_at <= WINDOW
    ]
    between = [(later - earlier).total_seconds() for earlier, later in pairwise(steps)]
    return min(median_low(between), most_s) if between else most_s
