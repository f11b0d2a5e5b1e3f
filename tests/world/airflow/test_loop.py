"""What a trigger awaits takes virtual time; what it leaves behind when it dies starts nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from world.airflow.loop import VirtualLoop
from world.running.scheduler import Scheduler


def looped(scheduler: Scheduler, what: Any, said: list[Any]) -> VirtualLoop:
    """The loop of an actor that runs it, and keeps what comes of it."""
    loop = VirtualLoop(scheduler, lambda body: scheduler.spawn("thread", body))
    scheduler.spawn("loop", lambda: said.append(loop.run_until_complete(what(scheduler))))
    return loop


def test_sleeps_and_threads_take_virtual_time_and_others_run_meanwhile() -> None:
    scheduler, said = Scheduler(1), list[Any]()

    def block() -> str:
        scheduler.wait(30.0)
        return f"read at {scheduler.at_s:.0f} s"

    async def what(_: Scheduler) -> tuple[str, float]:
        await asyncio.sleep(10.0)
        return await asyncio.to_thread(block), scheduler.at_s

    def other() -> None:
        scheduler.wait(20.0)
        said.append("other")

    looped(scheduler, what, said)
    looped(scheduler, what, said)
    scheduler.spawn("other", other)
    scheduler.run(100.0)
    assert said == ["other", ("read at 40 s", 40.0), ("read at 40 s", 40.0)]
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_what_is_cancelled_ends_early_and_its_thread_goes_on() -> None:
    scheduler, said = Scheduler(1), list[Any]()

    def block() -> None:
        scheduler.wait(30.0)
        said.append(("thread", scheduler.at_s))

    async def what(_: Scheduler) -> None:
        try:
            await asyncio.to_thread(block)
        finally:
            said.append(("ended", scheduler.at_s))

    loop = looped(scheduler, what, said)
    scheduler.spawn("person", loop.cancel, 5.0)
    scheduler.run(100.0)
    assert said == [("ended", 5.0), None, ("thread", 30.0)]


def test_errors_of_threads_are_raised_where_they_are_awaited() -> None:
    scheduler, said = Scheduler(1), list[Any]()

    def fails() -> None:
        raise ValueError("no")

    async def what(_: Scheduler) -> str:
        try:
            await asyncio.to_thread(fails)
        except ValueError as error:
            return str(error)
        return ""

    looped(scheduler, what, said)
    scheduler.run(10.0)
    assert said == ["no"]


def test_a_loop_that_is_dropped_starts_nothing_more(recwarn: pytest.WarningsRecorder) -> None:
    scheduler, said = Scheduler(1), list[Any]()

    async def events() -> AsyncIterator[int]:
        try:
            while True:
                await asyncio.sleep(1.0)
                yield 1
        finally:
            await asyncio.shield(asyncio.gather(asyncio.to_thread(said.append, "closed")))

    async def what(_: Scheduler) -> None:
        async for _event in events():
            pass

    looped(scheduler, what, said)
    scheduler.run(5.5)
    scheduler.abandon()
    assert said == []
    assert not recwarn.list
