"""Slices in Spark: the same plan as the same slices anywhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from include.domain.plan.infeasible import Obstacle, SubjectKind
from include.domain.plan.plan import Plan
from include.domain.request.request import Action, ReassignmentRequest
from include.planning.options import PlanOptions
from include.planning.sharded.planner import plan_in_slices
from include.warehouse import Warehouse, replicas_uri
from spark_jobs.spark_shards import slices_of, spark_slices
from tests.planning.large import large_snapshot
from tests.planning.sharded.test_sharded_planner import with_rates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from include.cluster.snapshot.model import Snapshot


def planned(spark: SparkSession, of: Snapshot, uri: str, partitions: int) -> Plan:
    without = replace(of, replicas=of.replicas.slice(0, 0))
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    with spark_slices(spark, replicas_uri(uri), slices_of(len(of.replicas), 900)) as slices:
        request = ReassignmentRequest(Action.REBALANCE, tolerance=0.05)
        return plan_in_slices(without, request, slices, PlanOptions(plan_id="p"))


def test_a_rebalance_in_slices_does_not_depend_on_how_many_run_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    of = with_rates(large_snapshot(1_000, 15, new=0.2))
    uri = Warehouse(tmp_path.as_uri()).write_snapshot(of)
    assert slices_of(3_000, 900) == 4
    assert slices_of(60_000_000, 50_000_000) == 12
    was = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        first, second = (planned(spark, of, uri, partitions) for partitions in (1, 4))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", was)
    assert first.moves
    assert first == second
    assert first.summary.rack_violations_after == 0
    found = {note.obstacle: note.subject.kind for note in first.summary.infeasible}
    found.pop(Obstacle.NO_LEADER_CHANGE, None)
    assert found == {Obstacle.PLANNED_IN_PARTS: SubjectKind.ALL_TOPICS}
