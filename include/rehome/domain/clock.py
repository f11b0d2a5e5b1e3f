"""Time and identities, from one place: what runs in the simulator takes them from nowhere else.

In production they are the machine's own. The simulator puts others in their place, so that one seed
fixes everything that happens.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

Clock = Callable[[], datetime]

CLOCKS_DIFFER = timedelta(minutes=1)
"""So much clocks of two machines may differ: what is later by more is from the future."""


class Outside(Protocol):
    """What code cannot know by itself."""

    def utc_now(self) -> datetime:
        """The time of day, aware, in UTC; it may jump."""
        ...

    def monotonic_s(self) -> float:
        """Seconds of a clock that only ever goes on."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def new_id(self) -> str:
        """32 hexadecimal digits that nothing else has."""
        ...


class _Machine:
    """The machine's own."""

    def utc_now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def new_id(self) -> str:
        return uuid.uuid4().hex


_outside: Outside = _Machine()


@contextmanager
def replaced_by(other: Outside) -> Iterator[None]:
    """Take time and identities from ``other`` meanwhile, in the whole process."""
    global _outside
    before, _outside = _outside, other
    try:
        yield
    finally:
        _outside = before


def utc_now() -> datetime:
    """The time, aware, in UTC."""
    return _outside.utc_now()


def monotonic_s() -> float:
    """A clock that only ever goes on, in seconds."""
    return _outside.monotonic_s()


def sleep(seconds: float) -> None:
    """Wait."""
    _outside.sleep(seconds)


def new_id() -> str:
    """32 hexadecimal digits that nothing else has."""
    return _outside.new_id()
