"""How soon the next moves start, from the samples of a plan."""

from __future__ import annotations

from datetime import timedelta

import pytest

from include.execution.model import ProgressSample
from include.execution.reaction import measured_reaction_s
from tests.execution.observed import T0


@pytest.mark.parametrize(
    ("steps", "expected_s"),
    [
        ([], 15),
        ([20], 15),
        ([20, 28, 36], 8),
        ([20, 60, 68, 76], 8),  # one of them waited for a large copy
        ([20, 60, 100], 15),
        ([0, 1, 2, 160, 170], 10),  # long ago
    ],
)
def test_the_time_between_steps_is_measured(steps: list[int], expected_s: float) -> None:
    """Somebody looks each second or so; moves have ended where the worker made a step."""
    history = [
        ProgressSample(T0 + timedelta(seconds=at), 0, 100, sum(step <= at for step in steps), 9, 1)
        for at in range(-1, 180)
    ]
    last_s = max(steps, default=0)
    until = [sample for sample in history if sample.sampled_at <= T0 + timedelta(seconds=last_s)]
    assert measured_reaction_s(until, until[-1].sampled_at, 15) == expected_s
