"""Rollups in the warehouse: made bit by bit or at once, with gaps reported and not filled."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.load_history.daily_rollups import (
    last_days,
    merge_rollups,
    pending_days,
    roll_up,
)
from rehome.load_history.retention import remove_old
from rehome.load_history.rollup import Rollup
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.warehouse import taken_at_of
from tests.load_history.recorded import CLUSTER, PACE, RATE, START, Cluster
from tests.quality.snapshots import PARTITIONS, Rows


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(f"memory://{tmp_path.name}")


def rates(rollup: Rollup) -> list[float]:
    """Mean rate in per partition, in kB/s."""
    return [
        round(total / seconds / RATE, 6) if seconds else float("nan")
        for total, seconds in zip(rollup.numbers["bytes_in"], rollup.numbers["in_s"], strict=True)
    ]


def same(one: Rollup, other: Rollup) -> bool:
    return bool(one.table().equals(other.table(), check_metadata=True))


@pytest.mark.slow
def test_two_days_are_rolled_up_each_by_itself_and_add_up(cluster: Cluster) -> None:
    for number in range(13):  # from 22:00 to 2:00
        cluster.snapshot(20 * number)
    cluster.roll_up()
    assert cluster.warehouse.rollups(CLUSTER).days() == ["2026-01-05", "2026-01-06"]
    total = cluster.rollup()
    assert total.span.snapshots == 13
    assert total.span.gaps == ()
    assert total.numbers["in_s"].tolist() == [4 * 3600] * PARTITIONS
    assert rates(total) == list(range(PARTITIONS))
    assert total.rates["in"].quantile(0.95, PARTITIONS)[5] == pytest.approx(5 * RATE, rel=0.049)


@pytest.mark.slow
def test_one_snapshot_at_a_time_gives_the_same_as_all_at_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    at_once = Cluster(tmp_path.as_uri())
    for number in range(9):
        for each in (cluster, at_once):
            each.snapshot(20 * number + number % 3)
        cluster.roll_up()
        cluster.roll_up()  # nothing is counted twice
    days = pending_days(at_once.warehouse, CLUSTER)
    for day in reversed(days):  # nor does it matter which day comes first
        roll_up(day, PACE)
    assert len(days) == 2
    assert pending_days(cluster.warehouse, CLUSTER) == []
    assert same(cluster.rollup(), at_once.rollup())


def test_a_gap_is_reported_and_nothing_is_said_of_it(cluster: Cluster) -> None:
    for minutes in (0, 10, 20, 300, 310):
        cluster.snapshot(minutes)
    cluster.roll_up()
    total = cluster.rollup()
    ends = [(START + timedelta(minutes=minutes)).isoformat() for minutes in (20, 300)]
    assert total.span.gaps == (tuple(ends),)
    assert total.numbers["in_s"].tolist() == [1800] * PARTITIONS
    assert rates(total) == list(range(PARTITIONS))


def test_a_snapshot_right_after_another_is_passed_over(cluster: Cluster) -> None:
    for minutes in (0, 10, 10.2, 20):
        cluster.snapshot(minutes)
    cluster.roll_up()
    assert cluster.rollup().span.snapshots == 3
    assert cluster.rollup().numbers["in_s"].tolist() == [1200] * PARTITIONS


def test_a_broker_that_was_away_leaves_its_partitions_unknown_and_only_them(
    cluster: Cluster,
) -> None:
    def away(rows: Rows) -> None:
        for row in rows.replicas:
            if row["partition"] == 3 and row["is_leader"]:
                row.update(size_bytes=None, log_end_offset=None, log_start_offset=None)

    for number in range(6):
        cluster.snapshot(10 * number, away if number == 3 else None)
    cluster.roll_up()
    total = cluster.rollup()
    assert total.numbers["in_s"].tolist() == [1800 if n == 3 else 3000 for n in range(PARTITIONS)]
    assert total.numbers["unread"][3] == 2
    assert rates(total) == list(range(PARTITIONS))


def test_a_topic_created_anew_starts_a_history_of_its_own(cluster: Cluster) -> None:
    def anew(rows: Rows) -> None:
        rows.topics[0]["topic_id"] = "another"
        for row in rows.replicas:
            row.update(size_bytes=0, log_end_offset=0)

    for number in range(7):
        cluster.snapshot(10 * number, anew if number > 3 else None)
    cluster.roll_up()
    total = cluster.rollup()
    assert total.topic_ids == ("another",)
    assert total.numbers["in_s"].tolist() == [1200] * PARTITIONS
    assert rates(total) == [0] * PARTITIONS
    assert total.rates["in"].quantile(0.95, PARTITIONS).tolist() == [0] * PARTITIONS


@pytest.mark.slow
def test_a_rollup_that_was_lost_is_made_again(cluster: Cluster) -> None:
    for number in range(9):
        cluster.snapshot(20 * number)
    cluster.roll_up()
    before = cluster.rollup()
    cluster.warehouse.rollups(CLUSTER).discard("2026-01-05")
    assert [day.day for day in pending_days(cluster.warehouse, CLUSTER)] == ["2026-01-05"]
    cluster.roll_up()
    assert same(cluster.rollup(), before)


@pytest.mark.slow
def test_old_snapshots_go_once_they_are_rolled_up_and_no_plan_needs_them(
    cluster: Cluster,
) -> None:
    uris = [cluster.snapshot(10 * number) for number in range(13)]  # until midnight
    request = ReassignmentRequest(Action.DRAIN, brokers=(4,))
    planned = replace(Rows().snapshot(), taken_at=taken_at_of(uris[4]))
    plan = make_plan(planned, request, PlanOptions(plan_id="p", rate_bytes_per_s=1_000_000))
    cluster.warehouse.plan("p").save(plan, request)
    later = START + timedelta(days=10)
    assert remove(cluster, later) == [], "nothing has been rolled up"
    cluster.roll_up()
    assert remove(cluster, START + timedelta(days=2)) == [], "not old enough"
    assert remove(cluster, later) == [uri for uri in uris[:12] if uri != uris[4]]
    assert cluster.warehouse.snapshots(CLUSTER) == [uris[4], uris[12]]
    cluster.snapshot(130)
    cluster.roll_up()
    assert cluster.rollup().span.snapshots == 14
    assert cluster.rollup().numbers["in_s"].tolist() == [130 * 60] * PARTITIONS


@pytest.mark.slow
def test_old_rollups_go_as_well(cluster: Cluster) -> None:
    for number in range(9):
        cluster.snapshot(20 * number)
    cluster.roll_up()
    gone = remove_old(
        cluster.warehouse, CLUSTER, START + timedelta(days=3), snapshot_days=90, rollup_days=2
    )
    assert gone == ["2026-01-05"]
    assert cluster.warehouse.rollups(CLUSTER).days() == ["2026-01-06"]


def remove(cluster: Cluster, now: datetime) -> list[str]:
    return remove_old(cluster.warehouse, CLUSTER, now, snapshot_days=7, rollup_days=90)


def test_a_window_reaches_back_from_the_newest_day() -> None:
    assert last_days(["2026-01-01", "2026-01-06", "2026-01-07"], 7) == [
        *("2026-01-01", "2026-01-06", "2026-01-07"),
    ]
    assert last_days(["2026-01-01", "2026-01-06", "2026-01-08"], 7) == ["2026-01-06", "2026-01-08"]
    assert last_days([], 7) == []


def test_merging_nothing_gives_nothing() -> None:
    nothing = merge_rollups([])
    assert same(nothing, Rollup.from_table(nothing.table()))
    assert np.array_equal(nothing.keys, np.zeros(0))


def test_the_order_of_a_rollups_rows_does_not_matter(cluster: Cluster) -> None:
    for number in range(4):
        cluster.snapshot(20 * number)
    cluster.roll_up()
    table = cluster.rollup().table()
    mixed = table.take(np.random.default_rng(0).permutation(len(table)))
    assert same(Rollup.from_table(mixed), Rollup.from_table(table))
