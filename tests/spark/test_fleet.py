"""Many clusters in one application: each planned as if alone, each with its own fate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.cluster.snapshot import REPLICAS
from include.planning.plan import Plan
from include.planning.request import parse_request
from include.warehouse import Warehouse, read_snapshot
from spark_jobs import fleet as job
from tests.quality.snapshots import Rows
from tests.spark.fleets import GOOD, Fleet, good_fleet, hash_alone, snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.usefixtures("spark")
def test_a_cluster_that_cannot_be_planned_does_not_hide_the_others(tmp_path: Path) -> None:
    poor = Rows()
    poor.replica(1, 1)["size_bytes"] = None
    requests = {
        "berlin": GOOD["berlin"],
        "lima": {"action": "drain", "brokers": [77]},
        "rome": GOOD["oslo"],
    }
    fleet = Fleet(tmp_path, requests)
    for cluster_id in requests:
        fleet.add(snapshot(cluster_id, rows=poor if cluster_id == "rome" else None))
    fleet.add(snapshot("unasked"))
    fleet.uris["gone"] = fleet.uris["berlin"].replace("cluster=berlin", "cluster=gone")

    assert job.main(fleet.arguments()) == job.SOME_WITHOUT_PLAN

    told = fleet.told()
    assert {name: entry["refused"] for name, entry in told.items()} == {
        "berlin": None,
        "lima": "invalid_request",
        "rome": "gate_refused",
        "unasked": "invalid_request",
        "gone": "invalid_request",
    }
    plan = fleet.plan("berlin").load()
    alone = hash_alone(read_snapshot(fleet.uris["berlin"]), requests["berlin"])
    assert told["berlin"]["plan_hash"] == plan.plan_hash == alone
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


def members(fleet: Fleet) -> list[job.Member]:
    return [
        job.Member(name, uri, fleet.plan(name), parse_request(fleet.requests[name]))
        for name, uri in fleet.uris.items()
    ]


def test_neither_the_neighbours_nor_the_parallelism_show_in_a_plan(
    spark: SparkSession, tmp_path: Path
) -> None:
    fleet = good_fleet(tmp_path)
    alone = [
        hash_alone(read_snapshot(uri), fleet.requests[name]) for name, uri in fleet.uris.items()
    ]
    assert len(set(alone)) == len(alone)
    options = job._options(fleet.arguments())
    was = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        for partitions in ("1", "2", "5"):
            spark.conf.set("spark.sql.shuffle.partitions", partitions)
            answers = job.plan_all(spark, members(fleet), options)
            assert [plan.plan_hash for plan in answers] == alone
        last = job.plan_all(spark, members(fleet)[::-1], options)
        assert [plan.plan_hash for plan in last] == alone[::-1]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", was)


def test_a_fault_of_the_planner_is_told_for_its_cluster(
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
    answers = job.plan_all(spark, members(fleet), job._options(fleet.arguments()))
    kind, told, _ = answers[0]
    assert kind == "planning_failed"
    assert "Traceback" in told
    assert isinstance(answers[1], Plan)
    assert answers[1].moves == ()
    assert answers[2].plan_hash == hash_alone(snapshot("paris"), GOOD["paris"])
