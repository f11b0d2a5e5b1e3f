"""The task graph of a reassignment, shared by every DAG that makes one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.sdk import TaskGroup

from rehome.operators.approval.approve import ApprovePlanOperator
from rehome.operators.completion.drained import CheckDrainedOperator
from rehome.operators.completion.preferred_leaders import RestorePreferredLeadersOperator
from rehome.operators.completion.report import WriteReportOperator
from rehome.operators.completion.verdict import VerdictOperator
from rehome.operators.completion.verify import VerifyReassignmentOperator
from rehome.operators.dry_run import DryRunOperator
from rehome.operators.execute import StartReassignmentOperator
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.throttle import ClearThrottleOperator, SetThrottleOperator
from rehome.params import keep_params_once
from rehome.run.plan_ids import FOLLOW_UP
from rehome.sensors.reassignment import ReassignmentSensor
from rehome.task_texts import task

POOL = "rehome_cluster"
"""Pool that limits the runs on clusters; a run that waits for its copies keeps its slot."""

CLEANING_POOL = "default_pool"
"""Of teardowns: what takes throttles back, and reports it, waits for no other run."""


def task_defaults() -> dict[str, Any]:
    """``default_args`` of a DAG with this graph."""
    return {"retries": 2, "retry_delay": timedelta(seconds=10), "pool": POOL}


@dataclass(frozen=True, slots=True)
class _Chain:
    """The ends of a chain of tasks that makes a plan and carries it out."""

    snapshot: SnapshotClusterOperator
    clear_throttle: ClearThrottleOperator
    drained: CheckDrainedOperator
    report: WriteReportOperator


def reassign() -> None:
    """Add the tasks to the DAG that is being written.

    The group ``follow_up`` is the same chain once more, with a plan of its own: for what has
    appeared on the brokers of a drain since the first one was made. Else it is skipped.
    """
    first = _chain()
    with TaskGroup(
        FOLLOW_UP,
        group_display_name="Follow up a drain",
        tooltip="What has appeared on drained brokers meanwhile",
    ):
        second = _chain()
    verdict = VerdictOperator(**task("verdict"), retries=0, pool=CLEANING_POOL)

    first.drained >> second.snapshot
    # Whatever happened, the reports come when everything has been cleared, and the verdict last.
    second.clear_throttle >> first.report
    second.drained >> first.report
    [first.report, second.report] >> verdict
    verdict.as_teardown(on_failure_fail_dagrun=True)
    keep_params_once(verdict.dag)


def _chain() -> _Chain:
    snapshot = SnapshotClusterOperator(**task("snapshot"), for_request=True)
    plan = PlanReassignmentOperator(**task("plan"))
    dry_run = DryRunOperator(**task("dry_run"))
    approve = ApprovePlanOperator(**task("approve"))
    throttle = SetThrottleOperator(**task("throttle"))
    execute = StartReassignmentOperator(**task("execute"))
    progress = ReassignmentSensor(**task("progress"))
    clear_throttle = ClearThrottleOperator(**task("clear_throttle"), retries=5, pool=CLEANING_POOL)
    verify = VerifyReassignmentOperator(**task("verify"))
    restore_leaders = RestorePreferredLeadersOperator(**task("restore_leaders"))
    drained = CheckDrainedOperator(**task("drained"))
    report = WriteReportOperator(**task("report"), pool=CLEANING_POOL)

    snapshot >> plan >> dry_run >> approve >> throttle >> execute >> progress >> clear_throttle
    # Teardowns succeed also after a failure: without its edge from progress, verify would run.
    progress >> verify
    # After a failure too, the report comes when everything has been cleared.
    clear_throttle >> report
    clear_throttle >> verify >> restore_leaders >> drained >> report

    # Teardowns, so that they run after a failure without hiding it. `snapshot` counts as a setup
    # too, for a throttle that dies halfway must be cleared; `verdict` runs whatever happened.
    clear_throttle.as_teardown(setups=[snapshot, throttle])
    report.as_teardown()
    return _Chain(snapshot, clear_throttle, drained, report)
