"""The windows of an installation without a clusters file are read as a file's are."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rehome.clusters.clusters_file import ClusterEntry, ClustersFileError
from rehome.clusters.window_settings import entry_of_settings
from rehome.settings import Settings


def entry(**given: object) -> ClusterEntry:
    return entry_of_settings(Settings.model_validate(given), "kafka_default")


def test_the_settings_make_an_entry() -> None:
    found = entry(window_cron="0 1 * * *", window_duration_s=100, window_timezone="Europe/Berlin")
    (window,) = found.windows
    assert window.duration == timedelta(seconds=100)
    assert window.zone == ZoneInfo("Europe/Berlin")
    opens = window.opens_after(datetime(2030, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")))
    assert opens == datetime(2030, 1, 2, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    assert found.own_plan is None
    assert [entry(window_own_plan=said).own_plan for said in (True, False)] == [True, False]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"window_cron": "0 0 30 2 *"}, "has cron='0 0 30 2 *', which has no date"),
        ({"window_cron": "R 1 * * *"}, "which has fields of random value"),
        ({"window_cron": "61 1 * * *"}, "which is no cron expression of five fields"),
        ({"window_cron": "0 0 1 * * *"}, "which is no cron expression of five fields"),
        ({"window_timezone": "Europe/Atlantis"}, "and there is no such time zone"),
    ],
)
def test_what_a_file_would_be_refused_for_is_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(ClustersFileError, match="The window of the settings has") as raised:
        entry(**given)
    assert why in str(raised.value)
    assert "Correct REHOME_WINDOW_CRON, " in str(raised.value)
