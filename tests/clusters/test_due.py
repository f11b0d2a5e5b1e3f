"""When a cluster is due to be planned for its next window."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rehome.clusters.due import NOT_DUE_WORDS, DueFacts, NotDue, why_not_due
from rehome.domain.request.fields.fleet_parameters import parse_fleet
from rehome.errors import InvalidRequestError
from rehome.execution.access.open_windows import CronWindow

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NIGHT = CronWindow("0 23 * * *", 4 * HOUR, ZoneInfo("UTC"))
DAY = CronWindow("0 13 * * *", HOUR, ZoneInfo("UTC"))
FRESH = DueFacts((NIGHT,), snapshot_taken_at=NOON - timedelta(minutes=9))


def test_a_cluster_is_due_before_its_next_window() -> None:
    assert why_not_due(FRESH, NOON) is None
    later = replace(FRESH, windows=(replace(NIGHT, cron="1 0 * * *"),))
    assert why_not_due(later, NOON) is NotDue.WINDOW_FAR
    assert why_not_due(later, NOON, is_named=True) is None
    two = replace(later, windows=(*later.windows, DAY))
    assert why_not_due(two, NOON) is None, "the nearest counts"


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (replace(FRESH, windows=()), NotDue.NO_WINDOW),
        (replace(FRESH, windows=(NIGHT, replace(DAY, cron="30 11 * * *"))), NotDue.WINDOW_OPEN),
        (replace(FRESH, active=True), NotDue.PLAN_ACTIVE),
        (replace(FRESH, handed_over=True), NotDue.HANDED_OVER),
        (replace(FRESH, planned_at=[NOON - HOUR]), NotDue.PLANNED),
        (replace(FRESH, snapshot_taken_at=None), NotDue.NO_SNAPSHOT),
        (replace(FRESH, snapshot_taken_at=NOON - 2 * HOUR), NotDue.OLD_SNAPSHOT),
    ],
)
def test_a_cluster_is_not_due(state: DueFacts, why: NotDue) -> None:
    assert why_not_due(state, NOON) is why
    assert NOT_DUE_WORDS.keys() == set(NotDue)


def test_a_plan_for_the_window_before_does_not_count() -> None:
    last_night = replace(FRESH, planned_at=[NOON - 14 * HOUR])
    assert why_not_due(last_night, NOON) is None
    often = replace(
        FRESH, windows=(NIGHT, DAY), planned_at=[NOON], snapshot_taken_at=NOON + 2 * HOUR
    )
    assert why_not_due(often, NOON + 2 * HOUR + timedelta(seconds=1)) is None


def test_a_plan_for_the_next_window_counts_however_early_it_was_made() -> None:
    early = replace(FRESH, planned_at=[NOON - 7 * HOUR, NOON - 14 * HOUR])
    assert why_not_due(early, NOON + 10 * HOUR) is NotDue.PLANNED


def test_what_is_wrong_with_the_parameters_is_named() -> None:
    assert parse_fleet({"clusters": "berlin, oslo"}).clusters == ("berlin", "oslo")
    with pytest.raises(InvalidRequestError) as caught:
        parse_fleet({"hours_ahead": 0, "cluster": "x"})
    assert len(caught.value.problems) == 1, "hours_ahead is of an earlier version, and ignored"
