"""How soon the next moves start: as measured of late. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median_low

from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.run_policy import Policy
from rehome.execution.estimate.rate_regression import COMMON_WINDOW


def measured_reaction_s(history: Sequence[ProgressSample], now: datetime, policy: Policy) -> float:
    """Time from one step of the worker to the next: the median of the last two minutes.

    Where copies take longer, a step waits for one of them to end, and not for Airflow: then, and
    until there have been two steps, it is what the policy says; more only where nothing has polled
    before steps for longer than that, less a poll.

    :param history: samples of all polls, oldest first. Moves end in the ledger by a step: between
        its own poll and the next one.
    """
    steps, silences = [], []
    for before, step, after in zip(history, history[1:], history[2:], strict=False):
        if after.moves_done != step.moves_done and now - after.sampled_at <= COMMON_WINDOW:
            steps.append(after.sampled_at)
            silences.append((step.sampled_at - before.sampled_at).total_seconds())
    if len(steps) < 2:
        return policy.reaction_s
    most_s, poll_s, silent_s = policy.reaction_s, policy.poll_interval_s, median_low(silences)
    if silent_s > max(poll_s, most_s - poll_s):
        most_s = poll_s + silent_s
    between = [(later - earlier).total_seconds() for earlier, later in pairwise(steps)]
    return min(median_low(between), most_s)
