"""A clock for ledgers that tests put forward."""

from __future__ import annotations

from datetime import datetime, timedelta

from rehome.domain.clock import Clock, utc_now


class SetClock:
    """The time, put forward at will.

    :param base: what it is ahead of; by default time passes by itself, too.
    """

    def __init__(self, base: Clock = utc_now) -> None:
        self._base = base
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        return self._base() + self._ahead

    def pass_s(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)
