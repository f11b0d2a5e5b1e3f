"""The catalog of alerts, which the handbook's table is made of."""

from __future__ import annotations

import pytest

from rehome.alerts.catalog import CATALOG, entry_of
from rehome.alerts.kinds import AlertKind, Repeats


def test_every_kind_is_in_the_catalog_once_and_the_worst_come_first() -> None:
    assert [entry.kind for entry in CATALOG] == list(AlertKind)


@pytest.mark.parametrize(
    ("kind", "again_s", "expected"),
    [
        (AlertKind.STALLED, 60.0, 60.0),
        (AlertKind.DISK_FORECAST, 60.0, 86_400.0),
        (AlertKind.DISK_FORECAST, 100_000.0, 100_000.0),
        (AlertKind.DONE, 60.0, None),
        (AlertKind.HELD, 60.0, None),
    ],
)
def test_how_often_the_same_is_reported_follows_from_its_kind(
    kind: AlertKind, again_s: float, expected: float | None
) -> None:
    assert entry_of(kind).again_s(again_s) == expected


def test_an_alert_that_only_the_page_shows_has_no_page_in_the_handbook() -> None:
    shown = {entry.kind for entry in CATALOG if entry.repeats is Repeats.ON_THE_PAGE}
    assert {entry.kind for entry in CATALOG if not entry.runbook} == shown
    assert entry_of(AlertKind.STALLED).runbook == "docs/alerts/stalled.md"
