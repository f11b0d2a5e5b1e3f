"""Calls that must end by themselves, however slow the machine is.

What is told here is an end from none, not quick from slow: a call that waits for somebody who does
not answer is given limits of its own beyond any patience, and the test's patience is many times
what the call takes where nobody has to be waited for.
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
