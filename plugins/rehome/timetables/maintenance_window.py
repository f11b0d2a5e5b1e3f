"""Maintenance windows: open at the times of cron expressions, each for a fixed time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pendulum
from airflow.exceptions import AirflowTimetableInvalid
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable

from rehome.execution.access.open_windows import (
    CronWindow,
    CronWindows,
    FixedWindow,
)

if TYPE_CHECKING:
    from airflow.timetables.base import TimeRestriction


class MaintenanceWindowTimetable(Timetable):
    """Starts a run when a window opens; the run's data interval is that window.

    Windows that were missed are not caught up with. One that is still open is used at once; of
    several, the one that closes last. Where windows overlap, a run has its own window's end, and a
    window that lies within the one that was used last is left out: it would close before its run
    could begin.

    :param windows: one or more.
    """

    active_runs_limit = 1

    def __init__(self, *windows: CronWindow) -> None:
        self.windows = CronWindows(windows)
        what = "A maintenance window" if len(windows) == 1 else "Maintenance windows"
        self.description = f"{what}: {self.summary}"

    @property
    def summary(self) -> str:
        """What Airflow's UI shows as the schedule."""
        return "; ".join(
            f"{each.cron} for {each.duration} ({each.zone.key})" for each in self.windows.each
        )

    def serialize(self) -> dict[str, Any]:
        """The windows as JSON."""
        return {"windows": [_as_json(each) for each in self.windows.each]}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> MaintenanceWindowTimetable:
        """What :meth:`serialize` wrote, here or in the version before, which wrote one window."""
        return cls(*map(_of_json, data.get("windows", [data])))

    def next_dagrun_info(
        self,
        *,
        last_automated_data_interval: DataInterval | None,
        restriction: TimeRestriction,
    ) -> DagRunInfo | None:
        """The window that is open, if it is none that was used, or else the next one."""
        now, used = datetime.now(UTC), _as_window(last_automated_data_interval)
        window = self.windows.open_at(now)
        if window is None or not _is_new(window, used, restriction):
            after = [now]
            if used is not None:
                after.append(used.begins)
            if restriction.earliest is not None:
                after.append(restriction.earliest - timedelta(microseconds=1))
            window = self.windows.next_after(max(after), used)
        if window is None or (
            restriction.latest is not None and window.begins > restriction.latest
        ):
            return None
        interval = _interval(window)
        # Airflow 3.2 asks for fields that others do not have.
        return DagRunInfo.exact(interval.start)._replace(data_interval=interval)

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        """The window that is open then, or else the one that opened last. A run outside of it finds
        it closed, and is refused.
        """
        return _interval(self.windows.opened_by(run_after) or FixedWindow(run_after, run_after))


def window_of(cron: str, duration: timedelta, timezone: str = "UTC") -> CronWindow:
    """A window by an IANA name of its time zone, such as Europe/Berlin.

    :raises AirflowTimetableInvalid: there is no such time zone.
    """
    try:
        return CronWindow(cron, duration, ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError):
        raise AirflowTimetableInvalid(f"There is no time zone {timezone!r}") from None


def _as_json(window: CronWindow) -> dict[str, Any]:
    seconds = window.duration.total_seconds()
    return {"cron": window.cron, "duration_s": seconds, "timezone": window.zone.key}


def _of_json(data: dict[str, Any]) -> CronWindow:
    return window_of(data["cron"], timedelta(seconds=data["duration_s"]), data["timezone"])


def _interval(window: FixedWindow) -> DataInterval:
    return DataInterval(pendulum.instance(window.begins), pendulum.instance(window.ends))


def _as_window(interval: DataInterval | None) -> FixedWindow | None:
    return None if interval is None else FixedWindow(interval.start, interval.end)


def _is_new(window: FixedWindow, used: FixedWindow | None, restriction: TimeRestriction) -> bool:
    """Whether a run may be made for a window that is open."""
    if restriction.earliest is not None and window.begins < restriction.earliest:
        return False
    return used is None or (window.begins > used.begins and window.ends > used.ends)
