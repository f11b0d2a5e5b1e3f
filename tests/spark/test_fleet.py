"""Many clusters in one application: each planned as if alone, each with its own fate."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rehome.cluster.snapshot.model import REPLICAS
from rehome.domain.request.parse_request import parse_request
from rehome.warehouse import Warehouse, read_snapshot
from spark_jobs import fleet as job
from spark_jobs.fleet_tasks import Answer, run_all
from tests.load_history.recorded import START, Cluster
from tests.quality.snapshots import Rows
from tests.spark.fleets import GOOD, Fleet, good_fleet, hash_alone, snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.usefixtures("spark")
def test_a_cluster_that_cannot_be_planned_does_not_hide_the_others(tmp_path: Path) -> None:
    poor = Rows()
    poor.replica(1, 1)["size_bytes"] = None
    # Once the first is found by halving, the others pass together.
    requests = {
        "rome": GOOD["oslo"],
        "berlin": GOOD["berlin"],
        "lima": {"action": "drain", "brokers": [77]},
    }
    fleet = Fleet(tmp_path, requests)
    for cluster_id in requests:
        fleet.add(snapshot(cluster_id, rows=poor if cluster_id == "rome" else None))
    fleet.add(snapshot("unasked"))
    fleet.uris["gone"] = fleet.uris["berlin"].replace("cluster=berlin", "cluster=gone")

    assert job.main(fleet.arguments()) == job.SOME_WITHOUT_PLAN

    reported = fleet.reported()
    assert {name: entry["refused"] for name, entry in reported.items()} == {
        "berlin": None,
        "lima": "invalid_request",
        "rome": "gate_refused",
        "unasked": "invalid_request",
        "gone": "invalid_request",
    }
    plan = fleet.plan("berlin").load()
    alone = hash_alone(read_snapshot(fleet.uris["berlin"]), requests["berlin"])
    assert reported["berlin"]["plan_hash"] == plan.plan_hash == alone
    gates = fleet.plan("berlin").read_json("gates.json")
    assert [gate["passed"] for gate in gates] == [True, True]
    assert fleet.plan("berlin").exists("reassignment.json")
    for cluster_id, reason in (
        ("lima", "Unknown broker 77"),
        ("rome", "every replica has a size"),
        ("unasked", "has no request for unasked"),
    ):
        assert reason in fleet.plan(cluster_id).read_json("failure.json")["message"]
        assert not fleet.plan(cluster_id).exists("summary.json")


def members(fleet: Fleet) -> list[job.FleetCluster]:
    return [
        job.FleetCluster(
            name,
            uri,
            fleet.plan(name),
            job.parse_options(fleet.arguments()),
            parse_request(fleet.requests[name]),
        )
        for name, uri in fleet.uris.items()
    ]


def planned(spark: SparkSession, some: list[job.FleetCluster]) -> list[Answer]:
    return run_all(spark, [job.task_of(member) for member in some])


def hash_of(answer: Answer) -> str:
    assert answer.plan is not None, answer.refusal
    return answer.plan.plan_hash


def test_a_plan_depends_neither_on_other_clusters_nor_on_parallelism(
    spark: SparkSession, tmp_path: Path
) -> None:
    fleet = good_fleet(tmp_path)
    alone = [
        hash_alone(read_snapshot(uri), fleet.requests[name]) for name, uri in fleet.uris.items()
    ]
    assert len(set(alone)) == len(alone)
    was = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        for partitions in ("1", "5"):
            spark.conf.set("spark.sql.shuffle.partitions", partitions)
            answers = planned(spark, members(fleet))
            assert [hash_of(answer) for answer in answers] == alone
        last = planned(spark, members(fleet)[::-1])
        assert [hash_of(answer) for answer in last] == alone[::-1]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", was)


def test_each_cluster_has_a_task_of_its_own_whatever_spark_coalesces(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Adaptive execution brings small partitions of a shuffle together, and hashes collide."""
    names = [f"cluster-{number}" for number in range(8)]
    fleet = Fleet(tmp_path, dict.fromkeys(names, GOOD["paris"]))
    for name in names:
        fleet.add(replace(snapshot("paris"), cluster_id=name))
    was = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        answers = planned(spark, members(fleet))
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", was)
    assert len({answer.task for answer in answers}) == len(names)


def test_a_fault_of_the_planner_is_reported_for_its_cluster(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A broken table ends one task, and a cluster without replicas has none."""
    fleet = Fleet(tmp_path, dict.fromkeys(("broken", "empty", "paris"), GOOD["paris"]))
    for name in fleet.requests:
        fleet.add(snapshot(name))
    for name, file, table in (
        ("broken", "brokers.parquet", snapshot("x").brokers.drop_columns("rack_path")),
        ("empty", "replicas.parquet", REPLICAS.empty_table()),
    ):
        Warehouse(fleet.uris[name]).write_table(file, table)
    answers = planned(spark, members(fleet))
    assert answers[0].refusal is not None
    kind, reported, _ = answers[0].refusal
    assert kind == "planning_failed"
    assert "Traceback" in reported
    assert answers[1].plan is not None
    assert answers[1].plan.moves == ()
    assert hash_of(answers[2]) == hash_alone(snapshot("paris"), GOOD["paris"])


@pytest.mark.usefixtures("spark")
def test_each_cluster_of_a_fleet_is_planned_by_its_own_history(tmp_path: Path) -> None:
    recorded = Cluster(tmp_path.as_uri())
    for number in range(5):
        recorded.snapshot(20 * number)
    recorded.roll_up()
    uneven = {"action": "rebalance", "tolerance": 0.9, "throttle": 1000}
    fleet = Fleet(tmp_path, {"test": uneven, "berlin": GOOD["berlin"]})
    fleet.add(replace(Rows().snapshot(), taken_at=START + timedelta(minutes=81)))
    fleet.add(snapshot("berlin"))
    history = ("--history", fleet.warehouse.uri, "--min-history-hours", "1")

    assert job.main([*fleet.arguments(), *history, "--max-snapshot-age-s", "1e10"]) == 0

    known, unknown = fleet.plan("test"), fleet.plan("berlin")
    assert known.load().moves
    assert known.load().summary.planned_by == (
        "bytes, bytes in per second and bytes out per second"
    )
    assert [gate["gate"] for gate in known.read_json("gates.json")] == [
        *("snapshot", "history", "plan")
    ]
    assert known.read_json("load.json")["forecast"]
    assert [gate["gate"] for gate in unknown.read_json("gates.json")] == ["snapshot", "plan"]
    assert not unknown.exists("load.json")


def test_two_snapshots_of_one_cluster_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """They would share one directory, and one of the plans would be lost without a word."""
    reported = ["--request", "r.json", "--out", "file:///plans"]
    several = [f"file:///s/cluster=a/{name}" for name in ("1", "2")]
    with pytest.raises(SystemExit):
        job.parse_options(["--snapshots", *several, *reported])
    assert "more than one of a; a cluster has one plan" in capsys.readouterr().err
    assert job.parse_options(["--snapshots", several[0], "file:///s/b", *reported]).name == "fleet"
