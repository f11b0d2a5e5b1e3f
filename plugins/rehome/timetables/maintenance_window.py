"""Maintenance windows: open at the times of a cron expression, for a fixed time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pendulum
from airflow.exceptions import AirflowTimetableInvalid
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable
from croniter import croniter

from include.settings import Settings

if TYPE_CHECKING:
    from airflow.timetables.base import TimeRestriction

_LARGEST_SHIFT = timedelta(hours=3)
"""No clock is put back by more than this, nor twice within it."""


class MaintenanceWindowTimetable(Timetable):
    """Starts a run when a window opens; the run's data interval is the window.

    The cron expression is read on the local clock. A window that opens in the hour that is left
    out when clocks go forward opens that much later; one in the hour that comes twice when they
    go back opens once, the first time. A window is open for ``duration`` of elapsed time
    whatever clocks do meanwhile: measured on the clock, some would be empty.

    Windows that were missed are not caught up with; one that is still open is used at once.

    :param cron: five fields, as cron writes them.
    :param duration: how long each window is open.
    :param timezone: an IANA name, such as Europe/Berlin.
    :raises AirflowTimetableInvalid: there is no such time zone; :meth:`validate` checks the rest.
    """

    active_runs_limit = 1

    def __init__(self, cron: str, *, duration: timedelta, timezone: str = "UTC") -> None:
        try:
            self._zone = ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError):
            raise AirflowTimetableInvalid(f"There is no time zone {timezone!r}") from None
        self.cron = cron
        self.duration = duration
        self.timezone = timezone
        self.description = f"A maintenance window: {self.summary}"

    @property
    def summary(self) -> str:
        """What Airflow's UI shows as the schedule."""
        return f"{self.cron} for {self.duration} ({self.timezone})"

    def validate(self) -> None:
        """Refuse what never opens, or never closes.

        :raises AirflowTimetableInvalid: naming the cause.
        """
        if len(self.cron.split()) != 5 or not croniter.is_valid(self.cron):
            raise AirflowTimetableInvalid(f"{self.cron!r} is not a cron expression of five fields")
        if self.duration <= timedelta():
            raise AirflowTimetableInvalid(f"A window of {self.duration} is never open")

    def serialize(self) -> dict[str, Any]:
        """The arguments as JSON."""
        seconds = self.duration.total_seconds()
        return {"cron": self.cron, "duration_s": seconds, "timezone": self.timezone}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> MaintenanceWindowTimetable:
        """What :meth:`serialize` wrote."""
        duration = timedelta(seconds=data["duration_s"])
        return cls(data["cron"], duration=duration, timezone=data["timezone"])

    def next_dagrun_info(
        self,
        *,
        last_automated_data_interval: DataInterval | None,
        restriction: TimeRestriction,
    ) -> DagRunInfo | None:
        """The first window after the last one used that has not closed by now."""
        after = datetime.now(UTC) - self.duration
        if last_automated_data_interval is not None:
            after = max(after, last_automated_data_interval.start)
        if restriction.earliest is not None:
            after = max(after, restriction.earliest - timedelta(microseconds=1))
        opens = self.first_opening(after)
        if restriction.latest is not None and opens > restriction.latest:
            return None
        window = self._window(opens)
        return DagRunInfo(run_after=window.start, data_interval=window)

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        """The window that was opened last. A run outside of it finds it closed, and is refused."""
        return self._window(self.last_opening(run_after))

    def first_opening(self, after: datetime) -> datetime:
        """The first opening later than an aware time; in UTC."""
        times = croniter(self.cron, self._local(after))
        while (opens := self._utc(times.get_next(datetime))) <= after:
            pass  # the clock shows this time for the second time
        return opens

    def last_opening(self, until: datetime) -> datetime:
        """The last opening that is not later than an aware time; in UTC."""
        # The clock may have shown later times already, if it was put back since.
        clock = max(self._local(until), self._local(until - _LARGEST_SHIFT) + _LARGEST_SHIFT)
        times = croniter(self.cron, clock + timedelta(seconds=1))
        while (opens := self._utc(times.get_prev(datetime))) > until:
            pass
        return opens

    def next_close(self, now: datetime) -> datetime:
        """When the window closes that is open, or opens next; aware UTC."""
        closes = self.last_opening(now) + self.duration
        return closes if closes > now else self.first_opening(now) + self.duration

    def _local(self, time: datetime) -> datetime:
        """What the local clock shows, naive."""
        return time.astimezone(self._zone).replace(tzinfo=None)

    def _utc(self, shown: datetime) -> datetime:
        """When the local clock first shows a time, or would have shown one that is left out."""
        return shown.replace(tzinfo=self._zone, fold=0).astimezone(UTC)

    def _window(self, opens: datetime) -> DataInterval:
        return DataInterval(pendulum.instance(opens), pendulum.instance(opens + self.duration))


class SeveralWindowsTimetable(Timetable):
    """Starts a run when any of several windows opens; the run's data interval is that window.

    Where windows overlap, a run has its own window's end. A window that lies within the one
    that was used last is left out: it would close before its run could begin.

    :param windows: two or more.
    """

    active_runs_limit = 1

    def __init__(self, windows: Sequence[MaintenanceWindowTimetable]) -> None:
        self.windows = tuple(windows)
        self.description = f"Maintenance windows: {self.summary}"

    @property
    def summary(self) -> str:
        """What Airflow's UI shows as the schedule."""
        return "; ".join(window.summary for window in self.windows)

    def validate(self) -> None:
        """Refuse what never opens, or never closes.

        :raises AirflowTimetableInvalid: naming the cause.
        """
        for window in self.windows:
            window.validate()

    def serialize(self) -> dict[str, Any]:
        """The windows as JSON."""
        return {"windows": [window.serialize() for window in self.windows]}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> SeveralWindowsTimetable:
        """What :meth:`serialize` wrote."""
        return cls([MaintenanceWindowTimetable.deserialize(item) for item in data["windows"]])

    def next_dagrun_info(
        self,
        *,
        last_automated_data_interval: DataInterval | None,
        restriction: TimeRestriction,
    ) -> DagRunInfo | None:
        """The first window after the last one used that has not closed by now."""
        found = (
            _next_outside(window, last_automated_data_interval, restriction)
            for window in self.windows
        )
        return min(filter(None, found), key=_first_and_longest, default=None)

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        """The window that is open longest, or else the one that was opened last."""
        found = [window.infer_manual_data_interval(run_after=run_after) for window in self.windows]
        still_open = [window for window in found if window.end > run_after]
        if still_open:
            return max(still_open, key=lambda window: window.end)
        return max(found, key=lambda window: window.start)

    def next_close(self, now: datetime) -> datetime:
        """When the window closes that is open longest, or else the one that opens next; UTC."""
        last = self.infer_manual_data_interval(run_after=now)
        if last.end > now:
            closes: datetime = last.end
            return closes
        opening = min(self.windows, key=lambda window: window.first_opening(now))
        return opening.next_close(now)


def _next_outside(
    window: MaintenanceWindowTimetable, used: DataInterval | None, restriction: TimeRestriction
) -> DagRunInfo | None:
    """The next time that it opens, but for those that are over when the used one is."""
    after = used
    while True:
        info = window.next_dagrun_info(last_automated_data_interval=after, restriction=restriction)
        if info is None or used is None or info.data_interval is None:
            return info
        if info.data_interval.end > used.end:
            return info
        after = info.data_interval


def _first_and_longest(info: DagRunInfo) -> tuple[datetime, float]:
    assert info.data_interval is not None
    return info.data_interval.start, -info.data_interval.end.timestamp()


WINDOWS = (MaintenanceWindowTimetable, SeveralWindowsTimetable)
"""The timetables whose runs have a window."""


def windows_of_settings(settings: Settings) -> MaintenanceWindowTimetable:
    """The windows that the settings name."""
    return MaintenanceWindowTimetable(
        settings.window_cron,
        duration=timedelta(seconds=settings.window_duration_s),
        timezone=settings.window_timezone,
    )
