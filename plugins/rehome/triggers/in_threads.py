"""Blocking calls of a trigger: each in a thread from which Airflow's SDK can be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from asgiref.sync import sync_to_async

Result = TypeVar("Result")


async def in_thread(call: Callable[[], Result]) -> Result:
    """Run a blocking call in a thread of its own, and wait for its end.

    Airflow 3.1 reads the answers to the SDK's questions in the event loop of the thread that asks.
    One of asyncio's threads has none: it gets a second loop, which reads from the same stream, and
    takes the answers of others ("Response read out of order"). A thread of asgiref's hands the
    question to the loop of the trigger.

    A trigger that is cancelled does not wait for the call, and the call goes on: half an answer
    left in the stream would be read as the beginning of the next one.
    """
    called = sync_to_async(call, thread_sensitive=False)()
    return await asyncio.shield(asyncio.ensure_future(called))
