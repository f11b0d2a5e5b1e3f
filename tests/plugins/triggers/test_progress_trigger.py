"""The trigger shares its event loop with every other trigger of the triggerer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.alerts.kinds import AlertKind
from rehome.ledger.base.alert_records import DueAlert
from rehome.ledger.base.database import LedgerNotOpenError
from rehome.triggers.progress import ReassignmentTrigger
from rehome.triggers.watch import PollOutcome


class Finds:
    """A watch that finds something to report at its first poll, and polls on."""

    def __init__(self, reported: threading.Event) -> None:
        self.polls = 0
        self.reported = reported

    def poll(self) -> PollOutcome:
        self.polls += 1
        due = (DueAlert(AlertKind.STALLED, "p1", {}, "id-1"),) if self.polls == 1 else ()
        if self.polls == 5:
            self.reported.set()
        return PollOutcome("there is something to do" if self.polls == 5 else "", "", due)

    def close(self) -> None:
        pass


def test_a_channel_that_hangs_delays_no_poll_and_is_waited_for_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goes_on, sent = threading.Event(), list[str]()

    def send(due: Sequence[DueAlert]) -> None:
        assert goes_on.wait(240)
        sent.extend(item.subject for item in due)

    monkeypatch.setattr("rehome.alerting.send", send)
    watch = Finds(goes_on)
    trigger = ReassignmentTrigger("kafka_default", None, 0.0, first_poll_s=0.0)
    monkeypatch.setattr(trigger, "open_watch", lambda: watch)

    async def run() -> None:
        async for event in trigger.run():
            assert event.payload["reason"] == "there is something to do"

    asyncio.run(run())
    assert (watch.polls, sent) == (5, ["p1"])


@pytest.mark.parametrize("patience_s", [600.0, 0.0])
def test_a_ledger_that_is_away_when_a_trigger_begins_is_waited_for_as_at_a_poll(
    monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    there, asked = threading.Event(), list[int]()

    def open_watch() -> Finds:
        asked.append(1)
        if len(asked) < 3:
            raise LedgerNotOpenError("The ledger cannot be opened")
        return Finds(there)

    monkeypatch.setattr(
        "rehome.installation.settings", lambda _: SimpleNamespace(stall_timeout_s=patience_s)
    )
    trigger = ReassignmentTrigger("kafka_default", None, 0.0, first_poll_s=0.0)
    monkeypatch.setattr(trigger, "open_watch", open_watch)
    monkeypatch.setattr("rehome.alerting.send", lambda due: None)

    async def run() -> list[Any]:
        return [event.payload["reason"] async for event in trigger.run()]

    if patience_s:
        assert asyncio.run(run()) == ["there is something to do"]
        return
    with pytest.raises(LedgerNotOpenError):
        asyncio.run(run())
    assert len(asked) == 1


class SlowToClose:
    """A watch that closes only once the event loop has gone on."""

    def __init__(self) -> None:
        self.loop_goes_on = threading.Event()
        self.closed_in_time = False

    def poll(self) -> PollOutcome:
        return PollOutcome("there is something to do", "")

    def close(self) -> None:
        self.closed_in_time = self.loop_goes_on.wait(timeout=120)


def test_closing_connections_does_not_hold_the_event_loop_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = SlowToClose()
    trigger = ReassignmentTrigger("kafka_default", None, 0.0, first_poll_s=0.0)
    monkeypatch.setattr(trigger, "open_watch", lambda: watch)

    async def run() -> list[Any]:
        events = []
        fired = trigger.run()
        assert isinstance(fired, AsyncGenerator)
        events.append(await anext(fired))
        closing = asyncio.ensure_future(fired.aclose())
        await asyncio.sleep(0)  # the closing begins
        watch.loop_goes_on.set()
        await closing
        return events

    (event,) = asyncio.run(run())
    assert event.payload["reason"] == "there is something to do"
    assert watch.closed_in_time
