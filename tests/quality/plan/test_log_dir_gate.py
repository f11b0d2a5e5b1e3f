"""A plan that balances disks within brokers passes the same hard rules as any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.domain.actions import Action
from rehome.domain.plan.kafka_json import reassignment_json, rollback_json
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.quality.gates import check_plan
from tests.quality.snapshots import PARTITIONS, SIZE_BYTES, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_plan_that_moves_replicas_between_log_dirs_passes(spark: SparkSession) -> None:
    snapshot = Rows().snapshot()
    request = ReassignmentRequest(Action.MOVE_LOG_DIRS)
    plan = make_plan(snapshot, request, PlanOptions(plan_id="p"))
    assert plan.summary.log_dir_bytes == PARTITIONS * SIZE_BYTES
    result = check_plan(
        spark,
        snapshot,
        plan,
        request,
        reassignment=reassignment_json(plan.moves),
        rollback=rollback_json(plan.moves),
    )
    assert result.passed, result
