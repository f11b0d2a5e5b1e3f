"""How soon the next moves start, from the samples of a plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.domain.run.progress import ProgressSample
from rehome.execution.estimate.reaction import measured_reaction_s
from tests.execution.observed import POLICY, T0


def samples(steps: list[int], silent_s: int) -> list[ProgressSample]:
    """A poll each second, but none for so long before each step; moves end in all of them."""
    last_s = max(steps, default=0)
    polls = {at for at in range(last_s) if not any(0 < step - at < silent_s for step in steps)}
    return [
        ProgressSample(T0 + timedelta(seconds=at), 0, 100, sum(step < at for step in steps), 9, 1)
        for at in sorted({*polls, *steps, last_s + 1})
    ]


@pytest.mark.parametrize(
    ("steps", "silent_s", "expected_s"),
    [
        ([], 1, 15),
        ([20], 1, 15),
        ([20, 28, 36], 1, 8),
        ([20, 28, 36], 6, 8),
        ([20, 60, 68, 76], 1, 8),  # one of them waited for a large copy
        ([20, 60, 100], 1, 15),  # each of them did
        ([30, 55, 80], 20, 25),  # there was no poll for longer than the policy says
        ([30, 48, 66], 13, 18),
        ([30, 50, 70], 10, 15),
        ([0, 1, 2, 160, 170], 1, 10),  # long ago
    ],
)
def test_the_time_between_steps_is_measured(
    steps: list[int], silent_s: int, expected_s: float
) -> None:
    history = samples(steps, silent_s)
    policy = replace(POLICY, reaction_s=15.0, poll_interval_s=5.0)
    assert measured_reaction_s(history, history[-1].sampled_at, policy) == expected_s
    later = history[-1].sampled_at + timedelta(minutes=3)
    assert measured_reaction_s(history, later, policy) == 15
