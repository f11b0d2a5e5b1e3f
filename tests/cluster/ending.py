"""Calls that must end by themselves, however slow the machine is.

The tests distinguish calls that end from calls that hang, not quick from slow ones. A call that
waits for a silent broker gets timeouts of its own that are longer than the test waits; the test
waits many times as long as the call takes when all brokers answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0
BEYOND_PATIENCE_S = 600.0
"""For what must not be waited for: whoever waits for it outlasts :data:`PATIENCE_S`."""


def ends(call: Callable[[], T]) -> T:
    """What ``call`` returns or raises.

    :raises TimeoutError: when it does not end. It is left behind, and goes with the process.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(PATIENCE_S)
