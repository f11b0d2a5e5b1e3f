"""Times of a plan over all its parts, from rows of a ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rehome.account.evidence import read_evidence
from rehome.account.known import Fact, Known, NotKnown, Source, Unknown
from rehome.account.times import (
    Elapsed,
    Predicted,
    elapsed_of,
    ends_at_poll,
    ends_of,
    predicted_of,
)
from rehome.account.words.figure_words import WHY_UNKNOWN, elapsed_text, end_of, predicted_text
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import PlanState
from rehome.domain.time_range import TimeRange
from rehome.ledger.store import Ledger
from rehome.ledger.stores.approvals.written_files import DryRun
from tests.ledger.set_clock import SetClock

POLLED = ProgressSample(datetime(2026, 1, 1, tzinfo=UTC), 5, 10, 0, 3, 3, eta_s=30.0)


def rounded(elapsed: Elapsed | None) -> tuple[int, int, int]:
    """Whole seconds: a clock in tests goes on by itself, too."""
    assert elapsed is not None
    return round(elapsed.total.seconds, -1), round(elapsed.paused.seconds, -1), elapsed.pauses


def test_time_counts_over_all_parts_and_pauses_are_named(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    clock.pass_s(100)
    running = elapsed_of(read_evidence(ledger, "p1"), clock())
    assert rounded(running) == (100, 0, 0)
    assert elapsed_text(running).startswith("1 min 4")
    ledger.transition("p1", PlanState.PAUSED, "a person")
    clock.pass_s(60)
    assert rounded(elapsed_of(read_evidence(ledger, "p1"), clock())) == (160, 60, 1)
    ledger.claim("p1")
    clock.pass_s(40)
    ledger.transition("p1", PlanState.PAUSED, "a person")
    clock.pass_s(30)
    ledger.claim("p1")
    clock.pass_s(20)
    ledger.transition("p1", PlanState.DONE, "all ended")
    clock.pass_s(3600)
    found = elapsed_of(read_evidence(ledger, "p1"), clock())
    assert rounded(found) == (250, 90, 2)
    assert elapsed_text(found).endswith("of it paused in 2 pauses")


def test_before_its_start_a_plan_has_taken_no_time(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    evidence = read_evidence(ledger, "p1")
    unstarted = replace(evidence, record=replace(evidence.record, started_at=None))
    assert elapsed_of(unstarted, clock()) is None
    assert elapsed_text(None) == "–"


def test_an_end_that_is_past_is_not_shown(ledger: Ledger, plan: Plan, clock: SetClock) -> None:
    assert ends_of(read_evidence(ledger, "p1"), clock()) == Unknown(NotKnown.NOT_POLLED)
    sample = ProgressSample(clock(), 1, 9, 0, 3, 3, eta_s=30.0)
    ledger.add_samples("p1", (), sample)
    evidence = read_evidence(ledger, "p1")
    ends = ends_of(evidence, sample.sampled_at + timedelta(seconds=33))
    assert isinstance(ends, Known)
    assert ends.value.likely == sample.sampled_at + timedelta(seconds=30)
    assert ends.value.least < ends.value.likely < ends.value.most
    assert end_of(ends) == (ends.value, "")
    past = ends_of(evidence, sample.sampled_at + timedelta(seconds=34))
    assert past == Unknown(NotKnown.PAST)
    assert end_of(past) == (None, WHY_UNKNOWN[NotKnown.PAST])
    still = replace(evidence, recent=(replace(sample, eta_s=None),))
    assert ends_of(still, clock()) == Unknown(NotKnown.NOTHING_COMES)
    ledger.transition("p1", PlanState.PAUSED, "a person")
    assert ends_of(read_evidence(ledger, "p1"), clock()) == Unknown(NotKnown.NOT_RUNNING)


def test_after_a_resume_the_prediction_is_still_that_of_the_whole_plan(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    moves = len(plan.moves)

    def tried(moves: int | None, least_s: float | None, most_s: float | None) -> Fact[Predicted]:
        run = DryRun("p1", "dag", "run", True, 1, "", "", None, moves, least_s, most_s)
        ledger.record_dry_run(run)
        return predicted_of(read_evidence(ledger, "p1"))

    assert predicted_of(read_evidence(ledger, "p1")) == Unknown(NotKnown.NOT_TRIED)
    assert tried(None, None, None) == Unknown(NotKnown.NOT_RECORDED)  # by an earlier version
    part = tried(1, 5.0, 6.0)
    assert isinstance(part, Known)
    assert part.value == Predicted(TimeRange(5.0, 6.0), a_part=True)
    assert predicted_text(part) == "5.0 s to 6.0 s for what was left when it went on"
    assert tried(moves, None, None) == Unknown(NotKnown.NEVER_ENDS)
    assert predicted_text(Unknown(NotKnown.NEVER_ENDS)) == ""
    whole = tried(moves, 60.0, 90.0)
    assert isinstance(whole, Known)
    assert (whole.value, whole.source) == (Predicted(TimeRange(60.0, 90.0)), Source.DRY_RUN)
    rest = tried(1, 5.0, 6.0)
    assert isinstance(rest, Known)
    assert rest.value == whole.value


@pytest.mark.parametrize(
    ("hurt", "why"),
    [
        (Hurt(HurtKind.DEAD_BROKERS, brokers=(4,), moves=2), NotKnown.BROKER_DEAD),
        (Hurt(HurtKind.OUTPACED, why="producers bring more"), NotKnown.OUTPACED),
        (Hurt(HurtKind.WAITS_FOR_LEADER, moves=1, why="no leader"), NotKnown.LEADERLESS),
        (Hurt(HurtKind.FOREIGN, holds=True), NotKnown.HELD),
    ],
    ids=lambda each: str(each.kind) if isinstance(each, Hurt) else str(each),
)
def test_while_something_stands_in_the_way_of_copies_no_end_is_shown(
    hurt: Hurt, why: NotKnown
) -> None:
    assert ends_at_poll(POLLED, None, (hurt,)) == Unknown(why)


def test_what_only_concerns_moves_that_need_nothing_of_it_hides_no_end() -> None:
    dead = Hurt(HurtKind.DEAD_BROKERS, brokers=(1,))
    assert isinstance(ends_at_poll(POLLED, None, (dead,)), Known)


def test_the_range_reaches_no_further_than_the_window() -> None:
    closes = POLLED.sampled_at + timedelta(seconds=31)
    ends = ends_at_poll(POLLED, closes, ())
    assert isinstance(ends, Known)
    assert ends.value.most == closes
    early = POLLED.sampled_at + timedelta(seconds=29)
    assert ends_at_poll(POLLED, early, ()) == Unknown(NotKnown.AFTER_WINDOW)
