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

from rehome.timetables.maintenance_window import (
    MaintenanceWindowTimetable,
    SeveralWindowsTimetable,
)

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
HOURS_3 = timedelta(hours=3)
ANY_TIME = TimeRestriction(earliest=None, latest=None, catchup=False)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def openings(table: MaintenanceWindowTimetable, start: str, end: str) -> list[datetime]:
    found = []
    opens = table.first_opening(at(start))
    while opens < at(end):
        found.append(opens)
        opens = table.first_opening(opens)
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
    table = MaintenanceWindowTimetable(cron, duration=HOURS_3, timezone=zone)
    end = (at(start) + timedelta(days=3)).isoformat()
    found = openings(table, start, end)
    assert shown(found, zone) == expected
    for opens, following in pairwise(found):
        second = timedelta(seconds=1)
        assert table.last_opening(opens) == opens
        assert table.last_opening(following - second) == opens
        inside = table.infer_manual_data_interval(run_after=opens + timedelta(hours=2))
        assert inside == DataInterval(opens, opens + HOURS_3)


@pytest.mark.parametrize(
    ("zone", "repeated"), [(BERLIN, "2025-10-26T01:10Z"), (NEW_YORK, "2025-11-02T06:10Z")]
)
def test_the_hour_that_comes_twice_opens_no_window_twice(zone: str, repeated: str) -> None:
    """It is ten past the repeated hour, and the window at half past has been opened before."""
    hour = at(repeated).astimezone(ZoneInfo(zone)).hour
    table = MaintenanceWindowTimetable(f"30 {hour} * * *", duration=HOURS_3, timezone=zone)
    assert at(repeated) - table.last_opening(at(repeated)) == timedelta(minutes=40)
    assert table.first_opening(at(repeated)) - at(repeated) > timedelta(hours=23)


def test_a_window_is_open_for_its_whole_time_over_a_change_of_clocks() -> None:
    table = MaintenanceWindowTimetable("0 1 * * *", duration=HOURS_3, timezone=BERLIN)
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
    open_now = MaintenanceWindowTimetable(minute, duration=HOURS_3)
    first = open_now.next_dagrun_info(last_automated_data_interval=None, restriction=ANY_TIME)
    assert first is not None
    assert first.data_interval is not None
    assert first.run_after == first.data_interval.start <= now < first.data_interval.end
    again = open_now.next_dagrun_info(
        last_automated_data_interval=first.data_interval, restriction=ANY_TIME
    )
    assert again is not None
    assert again.run_after - first.run_after == timedelta(days=1)

    closed = MaintenanceWindowTimetable(minute, duration=timedelta(minutes=2))
    missed = TimeRestriction(earliest=now - timedelta(days=9), latest=None, catchup=True)
    info = closed.next_dagrun_info(last_automated_data_interval=None, restriction=missed)
    assert info is not None
    assert info.run_after > now, "a window that is over is skipped"
    over = TimeRestriction(earliest=None, latest=now, catchup=False)
    assert closed.next_dagrun_info(last_automated_data_interval=None, restriction=over) is None


def test_airflow_reads_a_serialized_window_back() -> None:
    table = MaintenanceWindowTimetable("30 2 * * 6", duration=HOURS_3, timezone=NEW_YORK)
    back = decode_timetable(encode_timetable(table))
    assert type(back) is MaintenanceWindowTimetable
    assert back.serialize() == table.serialize()
    assert back.summary == "30 2 * * 6 for 3:00:00 (America/New_York)"


@pytest.mark.parametrize(
    ("cron", "duration", "reported"),
    [
        ("61 2 * * *", HOURS_3, "cron"),
        ("0 0 2 * * *", HOURS_3, "five fields"),
        ("0 2 * * *", timedelta(), "never open"),
    ],
)
def test_an_impossible_window_is_refused(cron: str, duration: timedelta, reported: str) -> None:
    with pytest.raises(AirflowTimetableInvalid, match=reported):
        MaintenanceWindowTimetable(cron, duration=duration).validate()


def test_an_unknown_time_zone_is_named() -> None:
    with pytest.raises(AirflowTimetableInvalid, match="Europe/Atlantis"):
        MaintenanceWindowTimetable("0 2 * * *", duration=HOURS_3, timezone="Europe/Atlantis")


def several(*windows: tuple[str, float]) -> SeveralWindowsTimetable:
    return SeveralWindowsTimetable(
        [
            MaintenanceWindowTimetable(cron, duration=timedelta(hours=hours))
            for cron, hours in windows
        ]
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
    assert table.next_close(inner + timedelta(minutes=5)) == first + timedelta(hours=4)
    assert table.next_close(now) == first + timedelta(hours=4)
    by_hand = table.infer_manual_data_interval(run_after=last + timedelta(hours=3))
    assert by_hand == DataInterval(last, last + timedelta(hours=2)), "it was opened last"


def test_airflow_reads_several_serialized_windows_back() -> None:
    table = several(("0 1 * * *", 4), ("0 13 * * 6", 1))
    back = decode_timetable(encode_timetable(table))
    assert type(back) is SeveralWindowsTimetable
    assert back.serialize() == table.serialize()
    assert back.summary == "0 1 * * * for 4:00:00 (UTC); 0 13 * * 6 for 1:00:00 (UTC)"
    back.validate()
    with pytest.raises(AirflowTimetableInvalid, match="never open"):
        several(("0 1 * * *", 0), ("0 13 * * 6", 1)).validate()
