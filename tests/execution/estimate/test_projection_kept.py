"""Playing a large plan out takes longer than a poll may: the result is kept for some polls."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.domain.run.flows import RateChange, RateReason
from rehome.domain.run.observation import Observation
from rehome.execution.admission.backlog import Backlog, Foreseen
from rehome.execution.estimate.projection import Course
from rehome.execution.progress import eta
from rehome.execution.progress.eta import foretell
from tests.execution.observed import ONE, POLICY, T0, running, seen

SEEN = seen(ONE)
VIEW = running(ONE)


def at(seconds: float) -> Observation:
    return replace(SEEN, taken_at=T0 + timedelta(seconds=seconds))


def test_a_projection_that_took_one_second_holds_for_fifty_and_counts_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = []

    def play_out(*_: object) -> Course:
        played.append(1)
        return Course(300.0, whole=True, work=1_000_000)

    monkeypatch.setattr(eta, "play_out", play_out)
    backlog, foreseen = Backlog.of(ONE, VIEW, SEEN), None
    reported = []
    for seconds in range(0, 61, 5):
        polled = at(seconds)
        found = foretell(VIEW, backlog, polled, POLICY, {}, None, (), foreseen)
        foreseen = found.foreseen
        reported.append(found.eta_s)
    assert len(played) == 2
    assert reported == [*range(300, 250, -5), 300, 295, 290]


def test_a_projection_is_dropped_once_the_throttle_or_the_brokers_change() -> None:
    known = Foreseen(T0, 300.0, 10**6, VIEW.target_bytes_per_s, SEEN.live_brokers)
    later = replace(SEEN, taken_at=T0 + timedelta(seconds=5))
    assert known.holds(VIEW, later)
    change = RateChange(T0, 9, 9, 9, RateReason.REQUESTED, "asked")
    assert not known.holds(replace(VIEW, rate_bytes_per_s=9, rates=(change,)), later)
    assert not known.holds(VIEW, replace(later, live_brokers=frozenset({1, 2})))
    assert not replace(known, eta_s=4.0).holds(VIEW, later), "the end has passed"
    assert not replace(known, work=1000).holds(VIEW, later), "it costs next to nothing"
