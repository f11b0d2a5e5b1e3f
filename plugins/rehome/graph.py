"""The task graph of a reassignment, shared by every DAG that makes one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rehome.operators.approve import ApprovePlanOperator
from rehome.operators.dry_run import DryRunOperator
from rehome.operators.execute import StartReassignmentOperator
from rehome.operators.finish import (
    RestorePreferredLeadersOperator,
    VerdictOperator,
    VerifyReassignmentOperator,
    WriteReportOperator,
)
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.throttle import ClearThrottleOperator, SetThrottleOperator
from rehome.sensors.progress import ReassignmentSensor

POOL = "rehome_cluster"


def task_defaults() -> dict[str, Any]:
    """``default_args`` of a DAG with this graph."""
    return {"retries": 2, "retry_delay": timedelta(seconds=10), "pool": POOL}


def reassign() -> None:
    """Add the tasks to the DAG that is being written."""
    snapshot = SnapshotClusterOperator(task_id="snapshot", for_request=True)
    plan = PlanReassignmentOperator(task_id="plan", snapshot=snapshot.output)
    dry_run = DryRunOperator(task_id="dry_run", snapshot=snapshot.output)
    approve = ApprovePlanOperator(task_id="approve")
    throttle = SetThrottleOperator(task_id="throttle")
    execute = StartReassignmentOperator(task_id="execute")
    progress = ReassignmentSensor(task_id="progress")
    clear_throttle = ClearThrottleOperator(task_id="clear_throttle", retries=5)
    verify = VerifyReassignmentOperator(task_id="verify")
    restore_leaders = RestorePreferredLeadersOperator(task_id="restore_leaders")
    report = WriteReportOperator(task_id="report")
    verdict = VerdictOperator(task_id="verdict", retries=0)

    snapshot >> plan >> dry_run >> approve >> throttle >> execute >> progress >> clear_throttle
    # Teardowns succeed also after a failure: without its edge from progress, verify would run.
    progress >> verify
    # After a failure too, the report comes when everything has been cleared.
    clear_throttle >> report
    clear_throttle >> verify >> restore_leaders >> report >> verdict

    # Teardowns, so that they run after a failure without hiding it. `snapshot` counts as a setup
    # too, for a throttle that dies halfway must be cleared; `verdict` runs whatever happened.
    clear_throttle.as_teardown(setups=[snapshot, throttle])
    report.as_teardown()
    verdict.as_teardown(on_failure_fail_dagrun=True)
