"""Slices in Spark: the same plan as the same slices anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rehome.domain.plan.infeasible import Obstacle, SubjectKind
from rehome.domain.request.request import Action, ReassignmentRequest
from rehome.planning.options import PlanOptions
from rehome.planning.slices.slice_planner import plan_in_slices
from rehome.warehouse import Warehouse, replicas_uri
from spark_jobs.spark_slices import slices_of, spark_slices
from tests.planning.large import large_snapshot
from tests.planning.slices.in_process import InProcess
from tests.planning.slices.test_slice_planner import with_rates
from tests.spark.plan.works import Seen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


REQUEST = ReassignmentRequest(Action.REBALANCE, tolerance=0.05)


def names(replicas: pa.Table) -> list[tuple[str, int]]:
    columns = (replicas.column(name).to_pylist() for name in ("topic", "partition"))
    return sorted(set(zip(*columns, strict=True)))


@contextmanager
def adaptive(spark: SparkSession, value: bool) -> Iterator[None]:
    was = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", value)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", was)


def test_each_slice_is_a_task_of_its_own_and_gets_nothing_of_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Twelve slices of twenty partitions: by a hash of their numbers, some would share a task. One
    that no partition's name leads to is a task without rows.
    """
    uri = replicas_uri(Warehouse(tmp_path.as_uri()).write_snapshot(large_snapshot(20, 6)))
    owner = "int(pmod(xxhash64(topic, partition), 12)) AS owner"
    rows = spark.read.parquet(uri).selectExpr("topic", "partition", owner).distinct().collect()
    expected = [sorted((t, p) for t, p, owner in rows if owner == number) for number in range(12)]
    assert [] in expected
    for value in (True, False):
        with adaptive(spark, value), spark_slices(spark, uri, 12) as slices:
            seen = slices.each({number: Seen(number) for number in reversed(range(12))})
        assert [(number, task) for number, task, _ in seen] == [(n, n) for n in range(11, -1, -1)]
        assert [names(given) for _, _, given in seen] == expected[::-1]


@pytest.mark.long
def test_a_rebalance_in_slices_does_not_depend_on_how_many_run_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Under adaptive execution as in this process, one after the other."""
    of = with_rates(large_snapshot(1_000, 15, new=0.2))
    uri = replicas_uri(Warehouse(tmp_path.as_uri()).write_snapshot(of))
    assert slices_of(3_000, 900) == 4
    assert slices_of(60_000_000, 50_000_000) == 12
    without = replace(of, replicas=of.replicas.slice(0, 0))
    with adaptive(spark, True), spark_slices(spark, uri, 4) as slices:
        first = plan_in_slices(without, REQUEST, slices, PlanOptions(plan_id="p"))
        here = InProcess([rows for _, _, rows in slices.each({n: Seen(n) for n in range(4)})])
    second = plan_in_slices(without, REQUEST, here, PlanOptions(plan_id="p"))
    assert first.moves
    assert first == second
    assert first.summary.rack_violations_after == 0
    found = {note.obstacle: note.subject.kind for note in first.summary.infeasible}
    found.pop(Obstacle.NO_LEADER_CHANGE, None)
    assert found == {Obstacle.PLANNED_IN_PARTS: SubjectKind.ALL_TOPICS}
