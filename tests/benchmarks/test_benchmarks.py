"""The benchmarks of the execution, small: they have to keep running."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.execution import contenders, execute, governor, page, poll
from benchmarks.snapshots import growth
from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.settings import Settings
from tests.conftest import Topics
from world.plan_of_moves import plan_of_moves

MEGABYTE = 1_000_000


def test_each_way_makes_the_moves_and_is_seen_from_outside(
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One after the other, on the same topic, as in the comparison."""
    monkeypatch.setattr(contenders, "WATCH_INTERVAL_S", 0.02)  # so little is copied in 0.1 s
    topic = topics.create([[1, 2]] * 3)
    topics.fill(topic, 600, size_bytes=10_000)
    moves = tuple(
        Move(TopicPartition(topic, n), (1, 2), (1, 3), 2 * MEGABYTE, MoveReason.BALANCE)
        for n in range(3)
    )
    settings = Settings(poll_interval_s=0.2, wake_s=0.0, min_free_disk_fraction=0.0)
    for way, make in contenders.CONTENDERS.items():
        plan = plan_of_moves(f"execute-{way}", cluster.cluster_id, moves, 2 * MEGABYTE)
        directory = tmp_path / way
        directory.mkdir()
        ground = contenders.Ground(
            cluster, gateway, plan, 2 * MEGABYTE, directory, 600.0, settings, wake_s=0.0
        )
        with contenders.Watcher(cluster) as watcher:
            make(ground)
        contenders.check_all_moved(ground)
        assert 0 < watcher.makespan_s < 600, way
        contenders.take_back(ground)


@pytest.mark.long
def test_a_whole_comparison_is_written_down() -> None:
    arguments = "--megabytes 4 --partitions 12 --bound-s 2 --wake-s 0 --idle-s 1 --warm-up-s 0.1"
    result = execute.measured(execute.parsed(arguments.split()))
    for way in contenders.CONTENDERS:
        assert result[way]["makespan_s"] > 0
        assert result[way]["producer_p99_ms"] >= result[way]["producer_p50_ms"] > 0
    assert result["idle"]["producer_p99_ms"] > 0
    assert json.loads(json.dumps(result)) == result


def test_the_least_time_is_that_of_the_busiest_broker_in_one_direction() -> None:
    moves = [
        Move(TopicPartition("t", n), (source, 2), (source, 4), size, MoveReason.DRAIN)
        for n, (source, size) in enumerate([(1, 10), (1, 20), (3, 5)])
    ]
    assert execute.busiest_bytes(moves) == 35  # all of them come to broker 4


def test_a_poll_of_a_plan_with_few_moves_in_flight_is_measured(
    gateway: ClusterGateway, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create([[1, 2, 3]] * 4)
    poll.fill(gateway, topic, size_bytes=5_000_000)
    try:
        url = f"sqlite:///{tmp_path / 'ledger.db'}"
        result = poll.measured(gateway, topic, url, moves=40, done=30, runs=1)
    finally:
        poll.clean_up(gateway, topic)
    assert result["in_flight_first"] == 4
    assert result["brokers"] == 4
    assert 0 < result["median_s"] <= result["worst_s"]
    assert 0 < result["median_cpu_s"] <= result["worst_cpu_s"]
    assert not gateway.list_reassignments()


def test_what_a_governor_delivers_is_measured_in_its_first_minute_and_in_those_after_it() -> None:
    """At 80 of 100 bytes a second for a minute, then at 100."""
    reported = [(float(at), 80 * at + 20 * max(0, at - 60)) for at in range(1, 200)]
    found = governor.figures(reported, 100, 30_000)
    assert found["first_minute_part"] == pytest.approx(0.8, abs=0.01)
    assert found["least_minute_part"] == found["largest_minute_part"] == 1.0
    assert found["minutes_within_5_percent"] == 1.0


@pytest.mark.long
def test_the_page_of_a_small_plan_is_measured() -> None:
    arguments = "--moves 60 --in-flight 5 --brokers 6 --polls 20 --refreshes 1"
    result = page.measured(page.parsed(arguments.split()))
    assert result["first_ms"] > 0
    assert result["refresh_cpu_ms_1"] > 0
    assert result["news_ms_10"] > 0


@pytest.mark.slow
def test_what_a_day_leaves_is_measured_of_files_and_of_rows(tmp_path: Path) -> None:
    asked = Namespace(partitions=100, moves=20, hours=0.01, poll_s=12.0)
    rows = growth.measured(asked, tmp_path)
    assert [row["what"] for row in rows] == [
        "snapshot, files",
        "snapshot, rows",
        "plan of 20 moves, 0.01 hours: files",
        "plan of 20 moves, 0.01 hours: rows",
    ]
    assert rows[0]["mb"] > 0
    assert min(rows[2]["mb"], rows[3]["mb"]) > 0
    assert rows[0]["mb_a_day"] == pytest.approx(rows[0]["mb"] * 144, abs=0.1)
