"""What is found to be wrong with a plan, and when that stops."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rehome.account.account import PlanAccount, account_of
from rehome.account.counts import PlanMoves, PlanThrottles
from rehome.account.evidence import PlanEvidence
from rehome.alerts.kinds import AlertKind
from rehome.alerts.plan_alerts import IN_VAIN, Patience, alerts_of
from rehome.domain.kafka import HighWatermark, TopicPartition
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.flows import RateChange, RateReason
from rehome.domain.run.ledger_view import DataSeen, RefusedCancel
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.alert_records import AlertRecord
from tests.reporting.reported_plans import moves, plan_of, record

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MB = 1_000_000
RUNNING = record(
    plan_of(*moves()),
    PlanState.RUNNING,
    started_at=NOW - timedelta(hours=1),
    last_progress_at=NOW - timedelta(seconds=5),
)
WELL = replace(
    account_of(PlanEvidence(RUNNING), NOW),
    moves=PlanMoves({MoveState.ADMITTED: 2}),
    throttles=PlanThrottles(4, 4, (), finishing=False),
)
NONE_SET = PlanThrottles(4, 0, (), finishing=False)
PATIENCE = Patience(60, 600)


def change(reason: RateReason, target: int, seconds: int) -> RateChange:
    at = NOW - timedelta(seconds=seconds)
    return RateChange(at, target, target, 50 * MB, reason, "2 followers left their ISR")


REFUSED = {TopicPartition("t", 0): RefusedCancel(NOW, NOW, 3, "no replica in sync (39)")}
CUT = change(RateReason.STRAIN, 25 * MB, 300)
LOST_OF, LOST = TopicPartition("t", 0), DataSeen(HighWatermark(0, 5), range(12_000))
ENDED = replace(WELL, record=replace(RUNNING, state=PlanState.FAILED))


@pytest.mark.parametrize(
    ("plan", "kinds"),
    [
        (WELL, []),  # throttles of a plan that runs are not owed
        (ENDED, [AlertKind.OWED]),
        (replace(ENDED, throttles=NONE_SET), []),
        (replace(WELL, orphaned=True), [AlertKind.ORPHANED]),
        (replace(WELL, dag_paused=True), [AlertKind.DAG_PAUSED]),
        (replace(WELL, dag_paused=True, orphaned=True), [AlertKind.DAG_PAUSED]),
        (
            replace(WELL, record=replace(RUNNING, refused_cancels=REFUSED)),
            [AlertKind.NOT_CANCELLED],
        ),
        (replace(ENDED, orphaned=True, throttles=NONE_SET), []),
        (replace(WELL, moves=PlanMoves({MoveState.FAILED: 1})), [AlertKind.FAILED_MOVES]),
        (replace(WELL, outpaced=("the copies cannot catch up",)), [AlertKind.OUTPACED]),
        (replace(WELL, outpaced=()), []),
        (replace(ENDED, throttles=NONE_SET, lost={LOST_OF: LOST}), [AlertKind.DATA_LOST]),
        (replace(WELL, now=NOW + timedelta(seconds=54)), []),
        (replace(WELL, now=NOW + timedelta(seconds=56)), [AlertKind.STALLED]),
        (replace(WELL, record=replace(RUNNING, held_at=NOW)), [AlertKind.HELD]),
        (
            replace(WELL, record=replace(RUNNING, held_at=NOW - timedelta(seconds=9))),
            [],  # it has moved since
        ),
        (replace(WELL, rates=(CUT,)), [AlertKind.THROTTLE_LOWERED]),
        (
            replace(WELL, rates=(CUT, change(RateReason.RECOVERY, 45 * MB, 9))),
            [AlertKind.THROTTLE_LOWERED],
        ),
        (replace(WELL, rates=(CUT, change(RateReason.RECOVERY, 50 * MB, 9))), []),
        (replace(WELL, rates=(change(RateReason.LOWERED, 50 * MB, 9),)), []),
        (
            replace(WELL, polled=(Hurt(HurtKind.SILENT_BROKERS, (3, 5)),)),
            [AlertKind.SILENT_BROKERS],
        ),
        (
            replace(
                WELL,
                window_end=NOW,
                at_this_pace=NOW - timedelta(seconds=1),
            ),
            [],
        ),
        (
            replace(WELL, window_end=NOW, at_this_pace=NOW + timedelta(hours=1)),
            [AlertKind.WINDOW_WILL_BE_MISSED],
        ),
    ],
)
def test_alerts_come_and_go_with_their_cause(plan: PlanAccount, kinds: list[AlertKind]) -> None:
    assert [alert.kind for alert in alerts_of(plan, PATIENCE)] == kinds


def raised(closed: bool) -> AlertRecord:
    closed_at = NOW if closed else None
    kind = AlertKind.WINDOW_WILL_BE_MISSED
    return AlertRecord(kind, "p", "", "p", "c", NOW, NOW, closed_at, None, NOW, NOW, 1, {})


@pytest.mark.parametrize(
    ("minutes", "before", "missed"),
    [
        (65, (), False),  # an estimate that is about right
        (67, (), True),
        (61, (raised(closed=False),), True),  # until the rest fits
        (61, (raised(closed=True),), False),
        (59, (raised(closed=False),), False),
    ],
)
def test_an_estimate_that_is_about_right_does_not_have_a_window_missed_and_kept_by_turns(
    minutes: int, before: tuple[AlertRecord, ...], missed: bool
) -> None:
    hour = replace(WELL, window_end=NOW + timedelta(hours=1), raised=before)
    found = alerts_of(replace(hour, at_this_pace=NOW + timedelta(minutes=minutes)), PATIENCE)
    assert bool(found) is missed


def test_a_channel_that_has_not_taken_an_alert_is_shown_as_long_as_that_lasts() -> None:
    failed = replace(raised(closed=False), failed_channels={"mail": "it answers 503"})
    (alert,) = alerts_of(replace(ENDED, throttles=NONE_SET, raised=(failed,)), PATIENCE)
    assert alert.kind is AlertKind.CHANNEL_FAILED
    assert "window_will_be_missed could not be sent through mail: it answers 503" in alert.text
    assert not alerts_of(
        replace(ENDED, throttles=NONE_SET, raised=(replace(failed, closed_at=NOW),)), PATIENCE
    )


def test_a_plan_that_only_waits_is_held_and_after_a_while_stalled_by_others() -> None:
    others = (Hurt(HurtKind.FOREIGN, holds=True),)
    held = replace(WELL, record=replace(RUNNING, held_at=NOW), moves=PlanMoves({}), polled=others)
    (alert,) = alerts_of(replace(held, now=NOW + timedelta(seconds=56)), PATIENCE)
    assert alert.kind is AlertKind.STALLED
    assert "What waits, and why: another client's reassignment runs." in alert.text
    assert (
        alert.next_step
        == "No step is needed: the plan goes on when the other client's reassignment has ended."
    )


def test_a_stall_that_begins_to_wait_in_vain_is_another_alert_once() -> None:
    waits, hangs = (Hurt(HurtKind.FOREIGN, holds=True, hangs=each) for each in (False, True))
    still = replace(WELL, now=NOW + timedelta(seconds=56), record=replace(RUNNING, held_at=NOW))
    held = replace(still, moves=PlanMoves({}), polled=(waits,))
    (before,) = alerts_of(held, PATIENCE)
    (after,) = alerts_of(replace(held, polled=(hangs,)), PATIENCE)
    assert (before.occurrence, after.occurrence) == ("", IN_VAIN)
    assert "That reassignment does not end by itself." in after.next_step
    said = replace(raised(closed=False), kind=AlertKind.STALLED, occurrence=IN_VAIN)
    (later,) = alerts_of(replace(held, raised=(said,)), PATIENCE)
    assert later.occurrence == IN_VAIN, "its broker comes and goes"
    (anew,) = alerts_of(replace(held, raised=(replace(said, closed_at=NOW),)), PATIENCE)
    assert anew.occurrence == ""
    (flying,) = alerts_of(replace(still, polled=(hangs,)), PATIENCE)
    assert flying.occurrence == "", "it does not only wait"


def test_the_worst_comes_first_and_the_text_names_cause_and_remedy() -> None:
    late = replace(
        WELL,
        window_end=NOW,
        at_this_pace=NOW + timedelta(hours=1),
        rates=(CUT,),
    )
    found = alerts_of(replace(late, orphaned=True), PATIENCE)
    assert [alert.kind for alert in found] == [
        AlertKind.ORPHANED,
        AlertKind.THROTTLE_LOWERED,
        AlertKind.WINDOW_WILL_BE_MISSED,
    ]
    orphaned, strain, window = (alert.text for alert in found)
    assert "run-1 sends no heartbeat" in orphaned
    assert "Resume or cancel the plan" in found[0].next_step
    assert "2 followers left their ISR" in strain
    assert "25 MB/s of 50 MB/s" in strain
    assert "1 h after the window closes" in window


def test_alerts_of_a_plan_without_a_throttle_mention_none() -> None:
    free = replace(RUNNING, request={"unthrottled": True})
    ends = replace(WELL, record=free, window_end=NOW, at_this_pace=NOW + timedelta(hours=3))
    found = alerts_of(replace(ends, orphaned=True, now=NOW + timedelta(hours=2)), PATIENCE)
    assert {alert.kind for alert in found} == {
        AlertKind.ORPHANED,
        AlertKind.STALLED,
        AlertKind.WINDOW_WILL_BE_MISSED,
    }
    said = " ".join(f"{alert.text} {alert.next_step}" for alert in found)
    assert said.count("throttle") == said.count("without a throttle") == 1
