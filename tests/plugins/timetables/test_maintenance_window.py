"""Windows open by the local clock, once, for their whole time, also when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from airflow.exceptions import AirflowTimetableInvalid
from airflow.serialization.decoders import decode_timetable
from airflow.serialization.encoders import encode_timetable
from airflow.timetables.base import DataInterval, TimeRestriction

from rehome.execution.access.open_windows import CronWindow
from rehome.timetables.maintenance_window import (
    MaintenanceWindowTimetable,
    window_of,
)

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
HOURS_3 = timedelta(hours=3)
ANY_TIME = TimeRestriction(earliest=None, latest=None, catchup=False)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def openings(window: CronWindow, start: str, end: str) -> list[datetime]:
    found = []
    opens = window.opens_after(at(start))
    while opens is not None and opens < at(end):
        found.append(opens)
        opens = window.opens_after(opens)
    return found


def shown(times: list[datetime], zone: str) -> list[str]:
    return [f"{time.astimezone(ZoneInfo(zone)):%d %H:%M %Z}" for time in times]


@pytest.mark.parametrize(
    ("zone", "cron", "start", "expected"),
    [
        (
            BERLIN,
            "0 1 * * *",
            "2025-03-28T22:00Z",
            ["29 01:00 CET", "30 01:00 CET", "31 01:00 CEST"],
        ),
        (
            BERLIN,
            "30 2 * * *",
            "2025-03-28T22:00Z",
            ["29 02:30 CET", "30 03:30 CEST", "31 02:30 CEST"],
        ),
        (
            BERLIN,
            "30 2 * * *",
            "2025-10-25T00:00Z",
            ["25 02:30 CEST", "26 02:30 CEST", "27 02:30 CET"],
        ),
        (
            NEW_YORK,
            "30 2 * * *",
            "2025-03-08T06:00Z",
            ["08 02:30 EST", "09 03:30 EDT", "10 02:30 EDT"],
        ),
        (
            NEW_YORK,
            "30 1 * * *",
            "2025-11-01T05:00Z",
            ["01 01:30 EDT", "02 01:30 EDT", "03 01:30 EST"],
        ),
    ],
)
def test_a_window_opens_once_a_day_by_the_local_clock_also_when_clocks_change(
    zone: str, cron: str, start: str, expected: list[str]
) -> None:
    table = MaintenanceWindowTimetable(window_of(cron, HOURS_3, zone))
    end = (at(start) + timedelta(days=3)).isoformat()
    [window] = table.windows.each
    found = openings(window, start, end)
    assert shown(found, zone) == expected
    for opens, following in pairwise(found):
        second = timedelta(seconds=1)
        assert window.opened_by(opens) == opens
        assert window.opened_by(following - second) == opens
        inside = table.infer_manual_data_interval(run_after=opens + timedelta(hours=2))
        assert inside == DataInterval(opens, opens + HOURS_3)


@pytest.mark.parametrize(
    ("zone", "repeated"), [(BERLIN, "2025-10-26T01:10Z"), (NEW_YORK, "2025-11-02T06:10Z")]
)
def test_the_hour_that_comes_twice_opens_no_window_twice(zone: str, repeated: str) -> None:
    """It is ten past the repeated hour, and the window at half past has been opened before."""
    hour = at(repeated).astimezone(ZoneInfo(zone)).hour
    table = MaintenanceWindowTimetable(window_of(f"30 {hour} * * *", HOURS_3, zone))
    [window] = table.windows.each
    opened, opens = window.opened_by(at(repeated)), window.opens_after(at(repeated))
    assert opened is not None
    assert opens is not None
    assert at(repeated) - opened == timedelta(minutes=40)
    assert opens - at(repeated) > timedelta(hours=23)


def test_a_window_is_open_for_its_whole_time_over_a_change_of_clocks() -> None:
    table = MaintenanceWindowTimetable(window_of("0 1 * * *", HOURS_3, BERLIN))
    for night, ends in [
        ("2025-03-30T00:30Z", "05:00 CEST"),
        ("2025-10-26T00:30Z", "03:00 CET"),
        ("2025-06-01T00:30Z", "04:00 CEST"),
    ]:
        window = table.infer_manual_data_interval(run_after=at(night))
        assert window.end - window.start == HOURS_3
        assert f"{window.end.astimezone(ZoneInfo(BERLIN)):%H:%M %Z}" == ends


def test_the_next_run_is_the_window_that_is_open_now_or_else_the_next_one() -> None:
    now = datetime.now(UTC)
    minute = (now - timedelta(minutes=5)).strftime("%M %H * * *")
    open_now = MaintenanceWindowTimetable(window_of(minute, HOURS_3))
    first = open_now.next_dagrun_info(last_automated_data_interval=None, restriction=ANY_TIME)
    assert first is not None
    assert first.data_interval is not None
    assert first.run_after == first.data_interval.start <= now < first.data_interval.end
    again = open_now.next_dagrun_info(
        last_automated_data_interval=first.data_interval, restriction=ANY_TIME
    )
    assert again is not None
    assert again.run_after - first.run_after == timedelta(days=1)

    closed = MaintenanceWindowTimetable(window_of(minute, timedelta(minutes=2)))
    missed = TimeRestriction(earliest=now - timedelta(days=9), latest=None, catchup=True)
    info = closed.next_dagrun_info(last_automated_data_interval=None, restriction=missed)
    assert info is not None
    assert info.run_after > now, "a window that is over is skipped"
    over = TimeRestriction(earliest=None, latest=now, catchup=False)
    assert closed.next_dagrun_info(last_automated_data_interval=None, restriction=over) is None


def test_airflow_reads_a_serialized_window_back() -> None:
    table = MaintenanceWindowTimetable(window_of("30 2 * * 6", HOURS_3, NEW_YORK))
    back = decode_timetable(encode_timetable(table))
    assert type(back) is MaintenanceWindowTimetable
    assert back.serialize() == table.serialize()
    assert back.summary == "30 2 * * 6 for 3:00:00 (America/New_York)"


def test_an_unknown_time_zone_is_named() -> None:
    with pytest.raises(AirflowTimetableInvalid, match="Europe/Atlantis"):
        MaintenanceWindowTimetable(window_of("0 2 * * *", HOURS_3, "Europe/Atlantis"))


def several(*windows: tuple[str, float]) -> MaintenanceWindowTimetable:
    return MaintenanceWindowTimetable(
        *(window_of(cron, timedelta(hours=hours)) for cron, hours in windows)
    )


def test_of_several_windows_each_is_used_but_one_that_lies_within_another() -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    first, inner, last = (now + timedelta(hours=hours) for hours in (2, 3, 12))
    table = several(
        (f"0 {first:%H} * * *", 4), (f"0 {inner:%H} * * *", 1), (f"0 {last:%H} * * *", 2)
    )
    used, found = None, []
    for _ in range(4):
        info = table.next_dagrun_info(last_automated_data_interval=used, restriction=ANY_TIME)
        assert info is not None
        used = info.data_interval
        found.append(used)
    day = timedelta(days=1)
    assert [window.start for window in found] == [first, last, first + day, last + day]
    assert table.windows.closes_after(inner + timedelta(minutes=5)) == first + timedelta(hours=4)
    assert table.windows.closes_after(now) == first + timedelta(hours=4)
    by_hand = table.infer_manual_data_interval(run_after=last + timedelta(hours=3))
    assert by_hand == DataInterval(last, last + timedelta(hours=2)), "it was opened last"


def test_a_late_start_takes_the_newest_open_window() -> None:
    """The scheduler was away when they opened: of two that are open, one is nearly over."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    older, newer = now - timedelta(minutes=50), now - timedelta(minutes=10)
    for table in (
        several((f"{older:%M %H} * * *", 1), (f"{newer:%M %H} * * *", 1)),
        several((f"{older:%M},{newer:%M} * * * *", 1)),
    ):
        info = table.next_dagrun_info(last_automated_data_interval=None, restriction=ANY_TIME)
        assert info is not None
        assert info.data_interval == DataInterval(newer, newer + timedelta(hours=1))


def test_what_the_version_before_has_serialized_is_read() -> None:
    before = {"cron": "0 1 * * *", "duration_s": 3600.0, "timezone": BERLIN}
    read = MaintenanceWindowTimetable.deserialize(before)
    assert read.windows.each == (window_of("0 1 * * *", timedelta(hours=1), BERLIN),)


def test_airflow_reads_several_serialized_windows_back() -> None:
    table = several(("0 1 * * *", 4), ("0 13 * * 6", 1))
    back = decode_timetable(encode_timetable(table))
    assert type(back) is MaintenanceWindowTimetable
    assert back.serialize() == table.serialize()
    assert back.summary == "0 1 * * * for 4:00:00 (UTC); 0 13 * * 6 for 1:00:00 (UTC)"
