"""Times at which something is allowed: by a cron expression and a duration, or from … until."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterBadDateError, croniter

_LARGEST_SHIFT = timedelta(hours=3)
"""No clock is put back by more than this, so no opening lies further ahead on the local clock."""


HEAD_START = timedelta(minutes=5)
"""From a window's opening: within it, its run may still be about to begin."""


@dataclass(frozen=True, slots=True)
class CronWindow:
    """Opens at the times of a cron expression, read on the local clock, for elapsed time.

    As in the timetable of maintenance windows: one that opens in the hour that is left out when
    clocks go forward opens that much later, one in the hour that comes twice opens the first time.

    :param cron: five fields.
    :param zone: whose clock.
    """

    cron: str
    duration: timedelta
    zone: ZoneInfo

    def open_until(self, at: datetime) -> datetime | None:
        """When it closes, in UTC, if it is open then; else None."""
        opened = self.open_since(at)
        return None if opened is None else opened + self.duration

    def open_since(self, at: datetime) -> datetime | None:
        """When it opened, in UTC, if it is open then; else None. If it has opened again before it
        closed, the later opening counts.
        """
        opened = self.opened_by(at)
        return opened if opened is not None and at < opened + self.duration else None

    def opened_by(self, at: datetime) -> datetime | None:
        """When it has opened last, in UTC; None = never before."""
        times = croniter(self.cron, self._local(at) + _LARGEST_SHIFT)
        while True:
            try:
                opened = self._utc(times.get_prev(datetime))
            except CroniterBadDateError:
                return None
            if opened <= at:
                return opened

    def opens_after(self, at: datetime) -> datetime | None:
        """When it opens next, in UTC; None = never again."""
        times = croniter(self.cron, self._local(at) - _LARGEST_SHIFT)
        while True:
            try:
                opens = self._utc(times.get_next(datetime))
            except CroniterBadDateError:
                return None
            if opens > at:
                return opens

    def _local(self, at: datetime) -> datetime:
        return at.astimezone(self.zone).replace(tzinfo=None)

    def _utc(self, local: datetime) -> datetime:
        return local.replace(tzinfo=self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class FixedWindow:
    """Open once, from one time until another, both aware UTC."""

    begins: datetime
    ends: datetime

    def open_until(self, at: datetime) -> datetime | None:
        """When it closes, if it is open then; else None."""
        return self.ends if self.begins <= at < self.ends else None

    def opens_after(self, at: datetime) -> datetime | None:
        """When it opens; None = it has already."""
        return self.begins if self.begins > at else None


@dataclass(frozen=True, slots=True)
class CronWindows:
    """The maintenance windows of a cluster. Of several that are open at once, the one that closes
    last counts: who is in the other may go on.
    """

    each: tuple[CronWindow, ...]

    def open_at(self, at: datetime) -> FixedWindow | None:
        """The one that is open; None = none is."""
        begun = [(each.open_since(at), each) for each in self.each]
        windows = [_fix(begins, each) for begins, each in begun if begins is not None]
        return max(windows, key=lambda window: window.ends, default=None)

    def opened_by(self, at: datetime) -> FixedWindow | None:
        """The one that is open, or else the one that opened last; None = none ever did."""
        begun = [(each.opened_by(at), each) for each in self.each]
        windows = [_fix(begins, each) for begins, each in begun if begins is not None]
        last = max(windows, key=lambda window: window.begins, default=None)
        return self.open_at(at) or last

    def next_after(self, at: datetime, used: FixedWindow | None = None) -> FixedWindow | None:
        """The first that opens after a time, of those that open at once the longest; None = none.

        :param used: what does not close later than this one is left out: nothing could begin in it.
        """
        begun = [self._opens(each, at, used) for each in self.each]
        windows = [window for window in begun if window is not None]
        return min(windows, key=lambda each: (each.begins, -each.ends.timestamp()), default=None)

    def takes_up(self, paused_at: datetime, now: datetime) -> FixedWindow | None:
        """The one whose run resumes what has paused; None = none is coming. The run of a
        window begins with it: one that has been open for a while has had its turn.
        """
        open_now = self.open_at(now)
        if open_now is not None and open_now.begins > max(paused_at, now - HEAD_START):
            return open_now
        return self.next_after(now, open_now)

    def closes_after(self, at: datetime) -> datetime | None:
        """When the one closes that is open, or opens next; None = none does."""
        window = self.open_at(at) or self.next_after(at)
        return None if window is None else window.ends

    def _opens(
        self, window: CronWindow, at: datetime, used: FixedWindow | None
    ) -> FixedWindow | None:
        begins = window.opens_after(at)
        while begins is not None and used is not None and begins + window.duration <= used.ends:
            begins = window.opens_after(begins)
        return None if begins is None else _fix(begins, window)


def _fix(begins: datetime, window: CronWindow) -> FixedWindow:
    return FixedWindow(begins, begins + window.duration)


Window = CronWindow | FixedWindow

_RANDOM = re.compile(r"(?<![A-Za-z])[rR](?![A-Za-z])")
_ANY_DAY = datetime(2026, 1, 1)
_CRON, _FIXED = {"cron", "hours", "timezone"}, {"from", "until"}


def window_from_json(value: Any) -> Window:
    """``{"cron": "0 1 * * *", "hours": 4, "timezone": "Europe/Berlin"}``, or
    ``{"from": "2030-01-31T01:00:00Z", "until": "2030-01-31T05:00:00Z"}``.

    :raises ValueError: with the cause, to be read after the window's name; TypeError likewise.
    """
    if not isinstance(value, Mapping):
        raise TypeError("is not a JSON object")
    keys = set(value)
    if {"cron", "hours"} <= keys <= _CRON:
        return _cron_window(value)
    if keys == _FIXED:
        begins, ends = _time(value["from"]), _time(value["until"])
        if begins >= ends:
            raise ValueError("ends before it begins")
        return FixedWindow(begins, ends)
    raise ValueError(
        f"has the keys {sorted(keys)}; write cron and hours (and timezone), or from and until"
    )


def _cron_window(value: Mapping[str, Any]) -> CronWindow:
    cron, hours, zone = value["cron"], value["hours"], value.get("timezone", "UTC")
    if not _is_cron(cron):
        raise ValueError(f"has cron={cron!r}, which is no cron expression of five fields")
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours <= 24 * 366:
        raise ValueError(f"has hours={hours!r}, which is no number of hours above 0")
    try:
        return CronWindow(cron, timedelta(hours=hours), ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise ValueError(f"has timezone={zone!r}, and there is no such time zone") from None


def _is_cron(cron: Any) -> bool:
    return isinstance(cron, str) and len(cron.split()) == 5 and croniter.is_valid(cron)


def cron_problem(cron: Any) -> str | None:
    """Why no maintenance window opens by a cron expression, to be read after ``which``; None = one
    does. A connection's policy may have one that never opens: it allows nothing.
    """
    if not _is_cron(cron):
        return "is no cron expression of five fields"
    if _RANDOM.search(cron):
        return "has fields of random value: each reading would find other times"
    try:
        croniter(cron, _ANY_DAY).get_next(datetime)
    except CroniterBadDateError:
        return "has no date: such a window never opens"
    return None


def _time(value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"names {value!r}, which is no ISO 8601 time such as 2030-01-31T04:00:00Z"
        ) from None
    if time.tzinfo is None:
        raise ValueError(f"names {value!r}, which has no time zone: add Z or +01:00")
    return time.astimezone(UTC)
