"""What is said of compacted topics, whose sizes say little of what was written to them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rehome.load_history.bytes_written import between
from rehome.load_history.daily_rollups import merge_rollups
from rehome.load_history.known_rates import Demands, LoadHistory
from rehome.load_history.load_profile import loads_of
from rehome.load_history.rollup import Rollup, rollup_of
from tests.load_history.logs import Log, read
from tests.load_history.recorded import RATE, START, Cluster
from tests.quality.snapshots import Rows

MB, GB = 10**6, 10**9
RECORDS = 100_000
A_DAY = 144  # intervals of ten minutes


def day(kept: list[int]) -> Rollup:
    """A day on which 100 MB are written in each interval, of which the cleaner keeps so much."""
    log, so_far = Log(policy="compact"), Rollup()
    before = read({"t": log}, 0)
    for number, size in enumerate(kept):
        log.append(RECORDS, 1000)
        log.size -= 100 * MB - size
        now = read({"t": log}, 10 * (number + 1))
        step = rollup_of(between(before, now, so_far.record_bytes(now)), now, "")
        so_far, before = merge_rollups([so_far, step]), now
    return so_far


@pytest.mark.slow
def test_one_interval_without_the_cleaner_shows_what_was_written_all_day() -> None:
    rollup = day([100 * MB, *[5 * MB] * (A_DAY - 1)])
    assert rollup.numbers["bytes_in"] == pytest.approx(14.4 * GB)
    assert rollup.numbers["measured_bytes"] == 0
    assert rollup.numbers["least_bytes"] == pytest.approx(0.1 * GB + (A_DAY - 1) * 5 * MB)
    (row,) = loads_of(rollup).to_pylist()
    assert row["bytes_in_mean"] == pytest.approx(14.4 * GB / 86_400)
    assert row["bytes_in_least"] < 0.1 * row["bytes_in_mean"]
    assert row["record_bytes"] == 1000


@pytest.mark.slow
def test_where_the_cleaner_is_always_at_work_a_lower_bound_is_reported_as_that() -> None:
    rollup = day([5 * MB] * A_DAY)
    assert rollup.numbers["measured_bytes"] == 0
    assert rollup.numbers["least_bytes"] == A_DAY * 5 * MB
    assert rollup.numbers["bytes_in"] >= rollup.numbers["least_bytes"]
    assert rollup.numbers["messages"] == A_DAY * RECORDS


def test_a_rollup_without_bounds_is_read_with_what_was_measured_as_bound() -> None:
    rollup = day([100 * MB])
    rollup.numbers["measured_bytes"][:] = 7
    table = rollup.table().drop_columns(["least_bytes", "added_per_record"])
    found = Rollup.from_table(table)
    assert found.numbers["least_bytes"] == 7
    assert found.numbers["added_per_record"] == 0


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_plan_knows_how_many_rates_are_estimated_and_what_is_certain(
    policy: str, tmp_path: Path
) -> None:
    def change(rows: Rows) -> None:
        rows.topics[0]["cleanup_policy"] = policy
        for row in rows.replicas:
            if policy == "compact" and row["log_end_offset"]:
                row["size_bytes"] = 10_000 + row["log_end_offset"]  # of 100 bytes each

    cluster = Cluster(f"memory://{tmp_path.name}")
    for number in range(5):
        cluster.snapshot(20 * number, change)
    cluster.roll_up()
    snapshot = replace(Rows().snapshot(), taken_at=START + timedelta(minutes=81))
    found = LoadHistory.read(cluster.warehouse, snapshot, Demands(min_hours=1.0))
    item = found.resources[0]
    assert item.is_known
    if policy == "delete":
        assert item.estimated_partitions == 0
        assert found.estimates() == ""
        return
    assert 0 < item.least_bytes_per_s < 0.9 * item.estimated_bytes_per_s < 66 * RATE
    assert f"bytes_in of {item.estimated_partitions} of 12 partitions is estimated" in (
        found.estimates()
    )
    assert "is certain" in found.estimates()
