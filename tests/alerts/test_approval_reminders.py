"""An alert is sent again while an approval is missing, and once more before its deadline."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rehome.alerts.alert import Alert
from rehome.alerts.approval_reminders import Reminder, reminder_of, unanswered_reminders
from rehome.alerts.due_alerts import approval_waits
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.states import PlanState
from rehome.ledger.base.alert_records import AlertRecord
from rehome.ledger.store import Ledger
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan

NOW = datetime(2026, 11, 24, 20, tzinfo=UTC)
HOUR_S = 3600.0


@pytest.fixture
def clock() -> SetClock:
    """Stands still until a test lets time pass."""
    return SetClock(lambda: NOW)


@pytest.fixture
def ledger(tmp_path: Path, empty_ledgers: EmptyLedgers, clock: SetClock) -> Iterator[Ledger]:
    empty_ledgers.put(tmp_path / "ledger.db")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=clock) as opened:
        yield opened


def asked(
    ledger: Ledger, *, window_end: datetime | None = None, lapses_at: datetime | None = None
) -> AlertRecord:
    """A plan that a person is asked to approve, and was alerted to."""
    plan = make_plan("p1", cluster_id="c1")
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
    ask(ledger, "run-1#1", window_end, lapses_at)
    (reported,) = ledger.open_alerts(AlertKind.APPROVAL_WAITING)
    return reported


def ask(ledger: Ledger, attempt: str, *until: datetime | None) -> None:
    alert = approval_waits(make_plan("p1"), ledger.plan("p1"), attempt, *until)
    sent(ledger, Reminder(alert, attempt), reminds=False)


def sent(ledger: Ledger, reminder: Reminder, *, reminds: bool = True) -> int:
    """How many alerts are sent of it."""
    alert = reminder.alert
    raised = reminder.to_raise(alert, HOUR_S) if reminds else alert.to_raise(HOUR_S)
    due = ledger.raise_alerts([raised])
    for item in due:
        ledger.record_sent(item, alert.text, {"mail": ""})
    return len(due)


def reminded(ledger: Ledger, now: datetime) -> int:
    reminders, over = unanswered_reminders(ledger, now)
    ledger.raise_alerts([], over)
    return sum(sent(ledger, each) for each in reminders)


def test_it_is_repeated_at_the_interval_and_once_more_in_the_last_hour(
    ledger: Ledger, clock: SetClock
) -> None:
    asked(ledger, window_end=NOW + timedelta(minutes=150))
    reported = []
    for _ in range(16):
        reported.append(reminded(ledger, clock()))
        clock.pass_s(600)
    assert [10 * number for number, times in enumerate(reported) if times] == [60, 90]
    assert not ledger.open_alerts(AlertKind.APPROVAL_WAITING), "the window has closed"
    (record,) = ledger.alerts("p1")
    assert "There is no answer yet, and less than an hour is left." in record.alert["text"]


def test_a_question_that_lapses_before_the_window_closes_has_that_deadline(ledger: Ledger) -> None:
    lapses_at = NOW + timedelta(minutes=30)
    reported = asked(ledger, window_end=NOW + timedelta(hours=5), lapses_at=lapses_at)
    assert "The question lapses at 2026-11-24 20:30 UTC." in reported.alert["text"]
    last = reminder_of(reported, NOW)
    assert last is not None
    assert last.alert.occurrence == "run-1#1#last"
    assert reminder_of(reported, lapses_at) is None


def test_no_reminder_is_raised_once_a_person_has_answered(ledger: Ledger) -> None:
    reported = asked(ledger, window_end=NOW + timedelta(minutes=30))
    last = reminder_of(reported, NOW)
    assert last is not None
    ledger.close_alerts("p1", AlertKind.APPROVAL_WAITING)
    assert sent(ledger, last) == 0
    assert not ledger.open_alerts(AlertKind.APPROVAL_WAITING)
    ask(ledger, "run-1#2", None, None)
    assert sent(ledger, last) == 0
    (record,) = ledger.open_alerts(AlertKind.APPROVAL_WAITING)
    assert record.occurrence == "run-1#2", "the other question stays"


def test_no_reminder_is_sent_for_a_plan_that_has_ended(ledger: Ledger) -> None:
    asked(ledger)
    ledger.transition("p1", PlanState.CANCELLED, "cancelled", "ann")
    assert unanswered_reminders(ledger, NOW) == ([], [(AlertKind.APPROVAL_WAITING, "p1")])


def test_the_catalog_lets_it_be_sent_again() -> None:
    assert Alert(AlertKind.APPROVAL_WAITING, "p1", "").to_raise(60.0).again_s == 60.0
