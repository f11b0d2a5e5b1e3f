"""Words that have to be true in all hands."""

from __future__ import annotations

import pytest

from include.alerts.alert_text import owed


@pytest.mark.parametrize(
    ("connection", "reported"),
    [
        ("kafka_default", "Its schedule comes to this cluster."),
        ("kafka_berlin", "each cluster of the clusters file. If neither is this one, trigger it "),
        ("", "with kafka_config_id of the connection that leads there."),
    ],
)
def test_a_report_of_owed_throttles_says_whether_the_sweep_runs_by_itself(
    connection: str, reported: str
) -> None:
    assert reported in owed((), (), connection)[1]
