"""A trigger's blocking calls: Airflow's SDK, asked from their threads, answers in its own loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
from asgiref.sync import async_to_sync

from rehome.triggers.progress import in_thread


async def loop_that_answers() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def asked() -> asyncio.AbstractEventLoop:
    """What the SDK of Airflow 3.1 does with every question from a trigger's process."""
    return async_to_sync(loop_that_answers)()


def test_a_question_to_airflow_is_put_in_the_loop_that_reads_the_answers() -> None:
    async def trigger() -> tuple[asyncio.AbstractEventLoop, ...]:
        return asyncio.get_running_loop(), await in_thread(asked), await in_thread(asked)

    own, first, second = asyncio.run(trigger())
    assert first is own
    assert second is own


def test_what_a_call_raises_is_raised() -> None:
    def refuses() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(in_thread(refuses))


def test_a_trigger_that_is_cancelled_waits_for_no_call_and_the_call_is_not_broken_off() -> None:
    began, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        assert goes_on.wait(60)
        assert asked() is not None
        ended.set()

    async def trigger() -> None:
        call = asyncio.ensure_future(in_thread(slow))
        await asyncio.to_thread(began.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not ended.is_set()
        goes_on.set()
        assert await asyncio.to_thread(ended.wait, 60)

    asyncio.run(trigger())
