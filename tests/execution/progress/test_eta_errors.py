"""How far off the recorded ETAs were, once a plan is done."""

from __future__ import annotations

from datetime import timedelta

from rehome.domain.run.progress import ProgressSample
from rehome.execution.progress.eta import EtaError, eta_errors
from tests.execution.observed import T0


def samples_of(*points: tuple[float, int, float | None]) -> list[ProgressSample]:
    """Samples of a plan of 100 bytes: seconds, bytes done, ETA."""
    return [
        ProgressSample(
            T0 + timedelta(seconds=at), done, 100, 0, 2, 1, eta_s=eta, busiest_bytes=100 - done
        )
        for at, done, eta in points
    ]


def test_errors_of_the_eta_are_reported_by_tenths_of_the_bytes() -> None:
    samples = samples_of(
        (0, 0, 110), (20, 15, 85), (22, 16, 60), (50, 50, None), (99, 99, None), (101, 100, 0)
    )
    assert eta_errors(samples) == (EtaError(0, 0.1), EtaError(1, -0.18))
    assert eta_errors(samples[:1]) == ()


def test_the_end_is_that_of_the_last_copy_and_not_when_the_worker_has_noticed_it() -> None:
    copied = samples_of((0, 0, 100), (50, 50, 60), (99, 99, 1), (101, 100, 0))
    assert eta_errors([*copied, *samples_of((109, 100, 0))]) == eta_errors(copied)
    assert eta_errors(copied)[1] == EtaError(5, 0.1)


def test_after_a_pause_only_later_polls_are_judged() -> None:
    night = samples_of(
        (0, 0, 5),
        (10, 50, 5),
        (10_000, 50, 60),
        (10_050, 90, 40),
        (10_099, 99, None),
        (10_101, 100, 0),
    )
    assert eta_errors(night) == (EtaError(5, -0.4), EtaError(9, -0.1))
