"""Waiting for a condition instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None], what: str, timeout_s: float = 120.0, interval_s: float = 0.1
) -> T:
    """Call ``condition`` until it returns something true, and return that.

    :raises TimeoutError: naming ``what`` when ``timeout_s`` pass without it.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:g} s in vain for: {what}")
        time.sleep(interval_s)
