"""Which process sends an alert: each alert once, by one process, and again only while it lasts."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rehome.alerts.kinds import AlertKind
from rehome.domain.run.event_kind import EventKind
from rehome.ledger.base.alert_records import DueAlert, RaisedAlert
from rehome.ledger.store import Ledger
from rehome.ledger.stores.alerts import CLAIM_S, RETRY_S
from tests.ledger.set_clock import SetClock
from tests.processes import FORKED

T0 = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = 3600.0
STALLED = RaisedAlert(AlertKind.STALLED, "p1", "", "p1", "c1", HOUR, {"text": "nothing moves"})
DONE = replace(STALLED, kind=AlertKind.DONE, again_s=None, occurrence="run-1#0")
TAKEN = {"mail": "", "chat": ""}


@pytest.fixture
def clock() -> SetClock:
    """Stands still until a test lets time pass."""
    return SetClock(lambda: T0)


def sent(ledger: Ledger, found: RaisedAlert = STALLED, **results: str) -> list[DueAlert]:
    """What is claimed when it is raised; it is sent at once."""
    due = ledger.raise_alerts([found])
    for item in due:
        ledger.record_sent(item, "nothing moves", results or TAKEN)
    return due


def reports_of(ledger: Ledger) -> list[str]:
    return [event.detail for event in ledger.events("p1") if event.kind == EventKind.ALERT_SENT]


def test_an_alert_whose_cause_lasts_is_sent_again_after_alert_again_s(
    ledger: Ledger, clock: SetClock
) -> None:
    assert [item.alert for item in sent(ledger)] == [{"text": "nothing moves"}]
    for _ in range(3):
        clock.pass_s(HOUR / 3 - 1)
        assert sent(ledger) == []
    clock.pass_s(3)
    assert len(sent(ledger)) == 1
    (record,) = ledger.alerts("p1")
    assert (record.times_sent, record.first_raised_at, record.closed_at) == (2, T0, None)
    assert reports_of(ledger) == ["stalled: nothing moves (sent through mail, chat)"] * 2


def test_an_alert_that_returns_after_it_was_closed_is_new(ledger: Ledger, clock: SetClock) -> None:
    sent(ledger)
    ledger.raise_alerts([], [STALLED.key])
    clock.pass_s(1)
    assert len(sent(ledger)) == 1
    assert [record.times_sent for record in ledger.alerts("p1")] == [1]


def test_an_alert_that_flaps_is_sent_once(ledger: Ledger, clock: SetClock) -> None:
    sent(ledger)
    for _ in range(5):
        clock.pass_s(200)
        ledger.raise_alerts([], [STALLED.key], quiet_s=300)
        clock.pass_s(50)
        assert sent(ledger) == []
    clock.pass_s(300)
    ledger.raise_alerts([], [STALLED.key], quiet_s=300)
    assert len(sent(ledger)) == 1, "it was away for long enough"


def test_an_event_is_reported_once_and_another_occurrence_again(
    ledger: Ledger, clock: SetClock
) -> None:
    assert len(sent(ledger, DONE)) == 1
    clock.pass_s(1_000 * HOUR)
    assert sent(ledger, DONE) == []
    assert len(sent(ledger, replace(DONE, occurrence="run-1#1"))) == 1
    assert len(sent(ledger, replace(DONE, subject="p2", plan_id="p2"))) == 1


def test_an_alert_claimed_by_a_process_that_dies_is_sent_by_another(
    ledger: Ledger, clock: SetClock
) -> None:
    assert len(ledger.raise_alerts([STALLED])) == 1
    clock.pass_s(CLAIM_S - 1)
    assert ledger.raise_alerts([STALLED]) == []
    clock.pass_s(2)
    assert len(sent(ledger)) == 1


def test_a_channel_that_failed_is_tried_again_alone_and_recorded_as_an_event(
    ledger: Ledger, clock: SetClock
) -> None:
    sent(ledger, mail="", chat="it answers 503")
    assert sent(ledger) == [], "not at the very next poll"
    clock.pass_s(RETRY_S)
    (again,) = sent(ledger, chat="it answers 503")
    assert again.channels == frozenset({"chat"})
    clock.pass_s(RETRY_S)
    (again,) = sent(ledger, chat="")
    assert again.channels == frozenset({"chat"})
    clock.pass_s(RETRY_S)
    assert sent(ledger) == []
    failures = [
        event.detail for event in ledger.events("p1") if event.kind == EventKind.ALERT_NOT_SENT
    ]
    assert failures == ["stalled: chat: it answers 503"] * 2
    assert [record.failed_channels for record in ledger.alerts("p1")] == [{}]


def test_a_channel_that_failed_is_tried_again_when_the_clock_was_put_back(
    ledger: Ledger, clock: SetClock
) -> None:
    sent(ledger, chat="it answers 503")
    clock.pass_s(-3600)
    (again,) = ledger.claim_unsent_alerts()
    assert again.channels == frozenset({"chat"})


def test_an_alert_that_is_raised_once_and_reached_no_channel_is_tried_by_the_sweep_for_a_day(
    ledger: Ledger, clock: SetClock
) -> None:
    ledger.raise_alerts([DONE])  # who was to send it is killed
    other = replace(DONE, subject="p2", plan_id="p2")
    sent(ledger, other, mail="", chat="it answers 503")
    sent(ledger, replace(DONE, subject="p3", plan_id="p3"))
    assert ledger.claim_unsent_alerts() == []
    clock.pass_s(CLAIM_S)
    left = ledger.claim_unsent_alerts()
    assert [(due.subject, due.channels) for due in left] == [("p1", None), ("p2", {"chat"})]
    assert ledger.claim_unsent_alerts() == [], "another sweep has them"
    clock.pass_s(24 * HOUR)
    assert ledger.claim_unsent_alerts() == []


def test_a_message_keeps_its_id_until_the_alert_is_repeated(
    ledger: Ledger, clock: SetClock
) -> None:
    """The process that sends it may die before the receiver has it, or after."""
    (first,) = ledger.raise_alerts([STALLED])
    clock.pass_s(CLAIM_S)
    (again,) = sent(ledger, mail="", chat="it answers 503")
    clock.pass_s(RETRY_S)
    (left,) = ledger.claim_unsent_alerts()
    assert first.message_id == again.message_id == left.message_id
    clock.pass_s(2 * HOUR)
    (repeated,) = sent(ledger)
    assert repeated.message_id != first.message_id


def test_what_is_written_down_without_a_claim_is_sent_by_the_next_task(
    ledger: Ledger, clock: SetClock
) -> None:
    assert ledger.unsent_since() is None
    begun = clock()
    for _ in range(2):
        assert ledger.raise_alerts([STALLED], claimed=False) == []
    (due,) = ledger.claim_unsent_alerts()
    clock.pass_s(HOUR)
    ledger.record_sent(due, "text", {"mail": "", "chat": "it answers 503"})
    assert ledger.unsent_since() == begun
    ledger.record_sent(due, "text", {"mail": "", "chat": ""})
    assert ledger.unsent_since() is None
    assert ledger.raise_alerts([STALLED], claimed=False) == []
    assert ledger.claim_unsent_alerts() == []
    clock.pass_s(2 * HOUR)
    ledger.raise_alerts([STALLED], claimed=False)
    (repeated,) = ledger.claim_unsent_alerts()
    assert (repeated.channels, repeated.message_id == due.message_id) == (None, False)


def test_an_alert_that_is_closed_with_its_plan_is_not_sent_again(
    ledger: Ledger, clock: SetClock
) -> None:
    sent(ledger, chat="it answers 503")
    ledger.close_alerts("p1", AlertKind.STALLED, AlertKind.OWED)
    clock.pass_s(CLAIM_S)
    assert ledger.claim_unsent_alerts() == []
    assert ledger.open_alerts(AlertKind.STALLED, cluster_id="c1") == []


def _claims(url: str) -> int:
    with Ledger.open(url) as ledger:
        return sum(len(ledger.raise_alerts([STALLED])) for _ in range(10))


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["processes", "threads"])
def test_one_of_many_processes_that_find_the_same_alert_sends_it(
    ledger_url: str, pool: str
) -> None:
    """As a worker, a trigger that runs twice, and a callback of the scheduler may."""
    Ledger.open(ledger_url).close()
    many = (
        ProcessPoolExecutor(4, mp_context=FORKED) if pool == "processes" else ThreadPoolExecutor(4)
    )
    with many:
        assert sum(many.map(_claims, [ledger_url] * 4)) == 1
