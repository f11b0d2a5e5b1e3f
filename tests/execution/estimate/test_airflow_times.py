"""How soon Airflow acts, as measured in earlier runs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.timing import RunTiming, timing_of
from rehome.domain.time_range import TimeRange
from rehome.execution.dry_run.result import DryRunResult, describe
from rehome.execution.estimate.airflow_times import airflow_times
from rehome.settings import Settings
from tests.execution.observed import T0

SETTINGS = Settings(wake_s=10.0, poll_interval_s=2.0)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def samples(*polls: tuple[float, int]) -> list[ProgressSample]:
    """Polls as (seconds, moves done)."""
    return [ProgressSample(at(seconds), 0, 100, done, 9, 1) for seconds, done in polls]


@pytest.mark.parametrize(
    ("polls", "wake_s"),
    [
        ([], None),
        ([(6, 0)], None),
        ([(5, 0), (8, 0), (12, 0)], 4),  # the worker's last poll settles the rest
        ([(5, 0), (8, 0), (9, 2), (14, 2), (20, 2)], 4.5),  # woken after 3 s and after 6 s
        ([(5, 0), (300, 0)], None),  # it had paused
    ],
)
def test_a_wake_is_from_the_triggers_poll_to_that_of_the_worker(
    polls: list[tuple[float, int]], wake_s: float | None
) -> None:
    timing = timing_of(T0, at(4), at(301), samples(*polls))
    assert timing == RunTiming(4, wake_s)


def test_without_any_run_the_settings_decide() -> None:
    found = airflow_times([], SETTINGS)
    assert found.runs == 0
    assert found.wake_s == found.start_s == TimeRange(0.5, 20)


def test_few_runs_widen_what_the_settings_expect_and_more_of_them_replace_it() -> None:
    slow = [RunTiming(30, 2), RunTiming(3, 40)]
    assert airflow_times(slow, SETTINGS).start_s == TimeRange(0.5, 37.5)
    assert airflow_times(slow, SETTINGS).wake_s == TimeRange(0.5, 50)
    enough = airflow_times([RunTiming(3, 2), RunTiming(4, 4), RunTiming(8, 3)], SETTINGS)
    assert enough.runs == 3
    assert enough.start_s == TimeRange(3, 10)
    assert enough.wake_s == TimeRange(2, 5)


@pytest.mark.parametrize(
    ("runs", "known"),
    [
        (0, "as the settings expect"),
        (1, "measured in 1 run and as the settings expect"),
        (3, "measured in 3 runs"),
    ],
)
def test_a_dry_run_says_what_the_reaction_of_airflow_is_known_from(runs: int, known: str) -> None:
    result = DryRunResult("p", "h", (), (), predicted=TimeRange(20, 60), runs_measured=runs)
    assert f"20 s to 1 min (Airflow's reaction: {known})" in describe(result)


def test_a_step_waits_for_the_first_poll_and_at_most_one_more_and_for_the_worker() -> None:
    times = airflow_times([RunTiming(3, 2), RunTiming(4, 4), RunTiming(8, 3)], SETTINGS)
    assert times.step_s == TimeRange(5 + 2, 5 + 2 + 5)
    assert times.end_s == TimeRange(2, 5 + 5)
