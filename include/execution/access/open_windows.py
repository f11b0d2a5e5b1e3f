"""Times at which something is allowed: by a cron expression and a duration, or from … until."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterBadDateError, croniter

_LARGEST_SHIFT = timedelta(hours=3)
"""No clock is put back by more than this, so no opening lies further ahead on the local clock."""


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
        """When it opened, in UTC, if it is open then; else None."""
        times = croniter(self.cron, self._local(at) + _LARGEST_SHIFT)
        while True:
            try:
                opened = self._utc(times.get_prev(datetime))
            except CroniterBadDateError:
                return None
            if opened <= at:
                return opened if at < opened + self.duration else None

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


Window = CronWindow | FixedWindow

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
    if not isinstance(cron, str) or len(cron.split()) != 5 or not croniter.is_valid(cron):
        raise ValueError(f"has cron={cron!r}, which is no cron expression of five fields")
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours <= 24 * 366:
        raise ValueError(f"has hours={hours!r}, which is no number of hours above 0")
    try:
        return CronWindow(cron, timedelta(hours=hours), ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise ValueError(f"has timezone={zone!r}, and there is no such time zone") from None


def _time(value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"names {value!r}, which is no ISO 8601 time") from None
    if time.tzinfo is None:
        raise ValueError(f"names {value!r}, which has no time zone: add Z or +01:00")
    return time.astimezone(UTC)
