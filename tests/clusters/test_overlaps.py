"""Windows that overlap are explained: which, and when first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.clusters.clusters_file import read_clusters
from rehome.clusters.overlaps import overlap_notes

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)  # a Tuesday


@pytest.mark.slow
@pytest.mark.parametrize(
    ("windows", "noted"),
    [
        (['cron: "0 1 * * *", hours: 4'], []),
        (['cron: "0 1 * * *", hours: 4', 'cron: "0 5 * * *", hours: 1'], []),
        (
            ['cron: "0 1 * * *", hours: 4', 'cron: "0 3 * * 6", hours: 6'],
            ["[0] and [1] overlap, first at 2030-01-05 03:00 UTC."],
        ),
        (
            ['cron: "0 1 * * *", hours: 4', 'cron: "0 1 1 * *", hours: 8'],
            ["[0] and [1] overlap, first at 2030-01-01 01:00 UTC."],
        ),
        (
            ['cron: "0 * * * *", hours: 2'],
            ["[0] opens again before it closes, first at 2030-01-01 02:00 UTC."],
        ),
        (
            ['cron: "30 0 * * *", hours: 1', 'cron: "0 1 24 12 *", hours: 3, timezone: UTC'],
            ["[0] and [1] overlap, first at 2030-12-24 01:00 UTC."],
        ),
    ],
)
def test_each_pair_that_overlaps_within_a_year_is_noted_once(
    windows: list[str], noted: list[str]
) -> None:
    listed = ", ".join(f"{{{window}}}" for window in windows)
    file = read_clusters(f"clusters: {{berlin: {{connection: x, windows: [{listed}]}}}}")
    found = overlap_notes(file, NOW)
    assert len(found) == len(noted)
    for note, expected in zip(found, noted, strict=True):
        assert note.startswith(f"clusters.berlin.windows: {expected}")
