"""What the history is good for: rates to plan by, or the reason why not; and full disks ahead."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.time_range import DAY_S
from rehome.load_history.forecast import disk_forecast, load_report
from rehome.load_history.known_rates import Demands, LoadHistory, ResourceHistory
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.load_history.recorded import RATE, START, Change, Cluster
from tests.quality.snapshots import PARTITIONS, Rows

DEMANDS = Demands(min_hours=1.0)
LAST = 80
DRAIN = ReassignmentRequest(Action.DRAIN, brokers=(4,))


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(f"memory://{tmp_path.name}")


def watched(cluster: Cluster, change: Change | None = None, hours: float = LAST / 60) -> None:
    for number in range(round(hours * 3) + 1):
        cluster.snapshot(20 * number, change)
    cluster.roll_up()


def now(cluster: Cluster, minutes: float = LAST + 1, rows: Rows | None = None) -> Snapshot:
    taken_at = START + timedelta(minutes=minutes)
    return replace((rows or Rows()).snapshot(), taken_at=taken_at)


def history(cluster: Cluster, snapshot: Snapshot, demands: Demands = DEMANDS) -> LoadHistory:
    return LoadHistory.read(cluster.warehouse, snapshot, demands)


def problems(of: LoadHistory) -> dict[str, list[str]]:
    return {item.resource: list(item.problems()) for item in of.resources}


def test_a_history_that_is_long_enough_gives_the_planner_its_rates(cluster: Cluster) -> None:
    watched(cluster)
    snapshot = now(cluster)
    found = history(cluster, snapshot)
    assert problems(found) == {"bytes_in": [], "bytes_out": [], "growth": []}
    arrays = ClusterArrays.from_snapshot(found.with_rates(snapshot))
    wanted = np.arange(PARTITIONS) * RATE
    assert arrays.bytes_in == pytest.approx(wanted, rel=0.049)
    assert arrays.bytes_out == pytest.approx(wanted, rel=0.049), "one follower each"
    assert found.growth == pytest.approx(wanted)


@pytest.mark.slow
def test_a_plan_is_made_by_rates_once_they_are_known(cluster: Cluster) -> None:
    watched(cluster)
    snapshot = now(cluster)
    request = parse_request({"action": "rebalance", "tolerance": 0.9, "throttle": 1_000_000})
    assert not make_plan(snapshot, request, PlanOptions(plan_id="p")).moves, "the disks are level"
    rated = history(cluster, snapshot).with_rates(snapshot)
    assert make_plan(rated, request, PlanOptions(plan_id="p")).moves, "the traffic is not"


def test_without_history_nothing_is_known_and_it_says_so(cluster: Cluster) -> None:
    snapshot = now(cluster)
    found = history(cluster, snapshot)
    reported = "the history covers 0.0 h of the 1 h it takes"
    assert problems(found) == {
        "bytes_in": [reported],
        "bytes_out": [reported],
        "growth": [reported],
    }
    assert found.with_rates(snapshot).replicas.equals(snapshot.replicas)


def test_a_short_history_is_too_thin(cluster: Cluster) -> None:
    watched(cluster, hours=2 / 3)
    found = history(cluster, now(cluster))
    assert problems(found)["bytes_in"] == ["the history covers 0.7 h of the 1 h it takes"]
    assert not found.is_known("growth")


def test_an_old_history_is_not_used(cluster: Cluster) -> None:
    watched(cluster)
    snapshot = now(cluster, LAST + 60 * 30)
    found = history(cluster, snapshot)
    assert problems(found)["bytes_in"] == ["the history ends 30.0 h before the snapshot"]
    assert "bytes_in_per_s" not in found.with_rates(snapshot).replicas.column_names


def test_a_group_that_does_not_answer_costs_the_bytes_out_and_nothing_else(
    cluster: Cluster,
) -> None:
    def unread(rows: Rows) -> None:
        rows.groups.append({"group": "auditors", "coordinator": 1, "error": "not allowed"})

    watched(cluster, unread)
    snapshot = now(cluster)
    found = history(cluster, snapshot)
    assert problems(found)["bytes_out"] == [
        "the history covers 0.0 h of the 1 h it takes",
        "offsets are not known of group auditors: not allowed",
    ]
    assert found.is_known("bytes_in")
    columns = found.with_rates(snapshot).replicas.column_names
    assert "bytes_in_per_s" in columns
    assert "bytes_out_per_s" not in columns


def test_a_group_that_does_not_answer_once_costs_nothing(cluster: Cluster) -> None:
    def unread(rows: Rows) -> None:
        rows.groups.append({"coordinator": 1, "error": "COORDINATOR_LOAD_IN_PROGRESS (14)"})

    for number in range(6):
        cluster.snapshot(20 * number, unread if number == 5 else None)
    cluster.roll_up()
    found = history(cluster, now(cluster, 101))
    assert found.span.unread
    assert problems(found)["bytes_out"] == []


def test_partitions_that_were_not_watched_are_counted(cluster: Cluster) -> None:
    def dark(rows: Rows) -> None:
        for row in rows.replicas:
            if row["partition"] < 2:
                row.update(log_end_offset=None)

    watched(cluster, dark)
    found = history(cluster, now(cluster))
    assert problems(found)["bytes_in"] == ["it is known of 10 of 12 partitions only"]


def test_a_topic_created_anew_has_none_of_its_namesakes_history(cluster: Cluster) -> None:
    watched(cluster)
    rows = Rows()
    rows.topics[0]["topic_id"] = "another"
    found = history(cluster, now(cluster, rows=rows))
    assert not found.is_known("bytes_in")
    assert np.isnan(found.rates["bytes_in"]).all()


@pytest.mark.slow
def test_a_partition_that_is_busy_for_a_moment_counts_by_its_mean(cluster: Cluster) -> None:
    for number in range(22):
        written = 6_000_000 if number > 15 else 0

        def burst(rows: Rows, size: int = written) -> None:
            for row in rows.replicas:
                row.update(size_bytes=size, log_end_offset=size // 100)

        cluster.snapshot(10 * number, burst)
    cluster.roll_up()
    found = history(cluster, now(cluster, 211))
    assert found.rates["bytes_in"] == pytest.approx([6_000_000 / (21 * 600)] * PARTITIONS)
    highest = cluster.rollup().numbers["max_bytes_in_per_s"]
    assert highest == pytest.approx([6_000_000 / 600] * PARTITIONS)


def test_a_resource_is_known_exactly_when_it_has_no_problem() -> None:
    fine = ResourceHistory("bytes_in", 100, 95, 30.0, 24.0, 1.0, 24.0)
    assert fine.is_known
    for worse in (
        {"known_partitions": 94},
        {"hours": 23.9},
        {"age_hours": 24.1},
        {"unread": ("group g: no",)},
    ):
        assert not replace(fine, **worse).is_known


def test_disks_are_forecast_for_the_end_of_the_move_and_for_days_after(cluster: Cluster) -> None:
    watched(cluster)
    rows = Rows()
    rows.log_dir(3, "/data/1").update(total_bytes=None, usable_bytes=None)
    snapshot = now(cluster, rows=rows)
    plan = make_plan(snapshot, DRAIN, PlanOptions(plan_id="p", rate_bytes_per_s=100))
    assert plan.summary.predicted_s
    found = {f.broker: f for f in disk_forecast(snapshot, plan, history(cluster, snapshot), 2)}
    assert found[3].free_bytes is None
    assert found[3].days_until_full is None
    grows = dict.fromkeys((1, 2, 3, 4), 0)
    arrives = dict(grows)
    before = dict(grows)
    targets = {move.partition.partition: move for move in plan.moves}
    for partition in range(PARTITIONS):
        current = [row["broker"] for row in rows.replicas if row["partition"] == partition]
        target = targets[partition].target if partition in targets else current
        for broker in current:
            before[broker] += partition * RATE
            arrives[broker] -= 1_000
        for broker in target:
            grows[broker] += partition * RATE
            arrives[broker] += 1_000
    for broker in (1, 2, 4):
        forecast = found[broker]
        assert forecast.growth_bytes_per_s == pytest.approx(grows[broker])
        move_bytes = arrives[broker] + plan.summary.predicted_s * max(before[broker], grows[broker])
        assert forecast.free_bytes_after_move == pytest.approx(1_800_000 - move_bytes, abs=2)
        assert forecast.free_bytes_after_move is not None
        later = forecast.free_bytes_after_move - 2 * DAY_S * grows[broker]
        assert forecast.free_bytes_in_days == pytest.approx(later, abs=2)
    assert found[4].growth_bytes_per_s == 0
    assert found[4].days_until_full is None
    left = found[1].free_bytes_after_move
    assert left is not None
    assert found[1].days_until_full == pytest.approx(max(left, 0) / grows[1] / DAY_S, abs=0.01)


def test_a_report_without_a_known_growth_has_no_forecast(cluster: Cluster) -> None:
    snapshot = now(cluster)
    plan = make_plan(snapshot, DRAIN, PlanOptions(plan_id="p", rate_bytes_per_s=100))
    report = load_report(snapshot, plan, history(cluster, snapshot), 30)
    assert report["forecast"] == []
    assert [item["known"] for item in report["resources"]] == [False] * 3
