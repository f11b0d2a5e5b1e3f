"""What copies have received, poll by poll, in the ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from rehome.domain.kafka import ReplicaId
from rehome.domain.run.progress import PACE_WINDOW, Gain, PollGains, ProgressSample
from rehome.ledger.store import Ledger
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan


def test_gains_of_the_last_minute_are_kept_as_they_were_read(
    ledger: Ledger, clock: SetClock
) -> None:
    ledger.create_plan(make_plan("p1"), {}, "file:///nowhere", "run-1", "bob")
    begin = ProgressSample(clock(), 0, 9, 0, 3, 1)
    gains = (
        Gain(ReplicaId("a", 0, 3), 1, 2**40),
        Gain(ReplicaId("a", 1, 3), None, None),
        Gain(ReplicaId("b", 0, 2), 2, 0),
    )
    before = begin.sampled_at - timedelta(seconds=1)
    ledger.add_samples("p1", (), begin, None, gains)
    assert ledger.gains("p1", before) == [PollGains(begin.sampled_at, gains)]
    assert ledger.gains("p1", begin.sampled_at) == []
    later = replace(begin, sampled_at=begin.sampled_at + PACE_WINDOW)
    ledger.add_samples("p1", (), later, None, gains[:1])
    assert [poll.at for poll in ledger.gains("p1", before)] == [begin.sampled_at, later.sampled_at]
    last = replace(later, sampled_at=later.sampled_at + timedelta(seconds=1))
    ledger.add_samples("p1", (), last)
    assert ledger.gains("p1", before)[0].at == later.sampled_at
