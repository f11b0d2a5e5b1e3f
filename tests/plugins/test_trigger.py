"""The trigger shares its event loop with every other trigger of the triggerer."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rehome.triggers.progress import ReassignmentTrigger
from rehome.triggers.watch import Look


class SlowToClose:
    """A watch that closes only once the event loop has gone on."""

    def __init__(self) -> None:
        self.loop_goes_on = threading.Event()
        self.closed_in_time = False

    def look(self) -> Look:
        return Look("there is something to do", "")

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
        events.append(await anext(fired))
        closing = asyncio.ensure_future(fired.aclose())
        await asyncio.sleep(0)  # the closing begins
        watch.loop_goes_on.set()
        await closing
        return events

    (event,) = asyncio.run(run())
    assert event.payload["reason"] == "there is something to do"
    assert watch.closed_in_time
