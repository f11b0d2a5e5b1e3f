"""What polls find that hurts, in the ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.ledger.store import Ledger
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan

DEAD, FOREIGN = Hurt(HurtKind.DEAD_BROKERS, (3,), 1), Hurt(HurtKind.FOREIGN)


def test_what_the_newest_poll_has_found_counts(ledger: Ledger, clock: SetClock) -> None:
    ledger.create_plan(make_plan("p1"), {}, "file:///nowhere", "run-1", "bob")
    first = clock()
    assert ledger.hurts("p1") == ()
    assert ledger.record_hurts("p1", first, [FOREIGN]) == (replace(FOREIGN, since=first),)
    clock.pass_s(10)
    second = first + timedelta(seconds=5)
    both = (replace(DEAD, since=second), replace(FOREIGN, since=first))
    assert ledger.record_hurts("p1", second, [FOREIGN, DEAD]) == both
    assert ledger.hurts("p1") == both
    ledger.record_hurts("p1", first, [])  # a poll that comes late
    assert ledger.hurts("p1") == both
    ledger.record_hurts("p1", second + timedelta(seconds=5), [])
    assert ledger.hurts("p1") == ()


def test_of_a_plan_that_another_ledger_knows_nothing_is_recorded(
    ledger: Ledger, clock: SetClock
) -> None:
    with pytest.raises(PlanConflictError, match="knows no plan"):
        ledger.record_hurts("p1", clock(), [FOREIGN])


def test_a_clock_that_was_put_back_hides_nothing(ledger: Ledger, clock: SetClock) -> None:
    ledger.create_plan(make_plan("p1"), {}, "file:///nowhere", "run-1", "bob")
    ahead = clock() + timedelta(minutes=5)
    ledger.record_hurts("p1", ahead, [FOREIGN])
    ledger.record_hurts("p1", clock(), [DEAD])
    assert [each.kind for each in ledger.hurts("p1")] == [HurtKind.DEAD_BROKERS]


def test_a_poll_that_finds_nothing_after_nothing_writes_nothing(
    ledger: Ledger, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.create_plan(make_plan("p1"), {}, "file:///nowhere", "run-1", "bob")

    def written() -> None:
        raise AssertionError("it writes")

    monkeypatch.setattr(ledger, "writing", written)
    assert ledger.record_hurts("p1", clock(), []) == ()


def test_what_was_found_before_a_plan_went_on_is_over_whatever_the_clock_says(
    ledger: Ledger, clock: SetClock
) -> None:
    ledger.create_plan(make_plan("p1"), {}, "file:///nowhere", "run-1", "bob")
    for state in (PlanState.APPROVED, PlanState.RUNNING):
        ledger.transition("p1", state, "as asked")
    put_back = clock() - timedelta(minutes=5)
    ledger.record_hurts("p1", put_back, [DEAD])
    assert [each.kind for each in ledger.hurts("p1")] == [HurtKind.DEAD_BROKERS]
    ledger.transition("p1", PlanState.PAUSED, "the window has ended")
    ledger.transition("p1", PlanState.RUNNING, "resumed")
    assert ledger.hurts("p1") == ()
