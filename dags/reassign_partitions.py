"""Moves partitions between brokers: drain, rebalance, replication factor, racks, or by hand."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.notifiers.notifier import RehomeNotifier
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
from rehome.params import reassignment_params
from rehome.sensors.progress import ReassignmentSensor

DOC = """
### Reassign partitions

Trigger with parameters; the form explains each. What happens:

1. `snapshot`, `plan`, `dry_run` only read. Their logs, and the report whose place `dry_run`
   prints, tell what would be moved and why. With `dry_run` the run ends here.
2. `approve` waits for a person where `approval` is set.
3. `throttle` … `clear_throttle` change the cluster. Whatever ends the run, also a kill or a
   *mark failed*, `clear_throttle` cancels what is still in flight of this plan and puts every
   throttle back as it stood before.
4. `verify` proves each partition from a fresh read; `verdict` fails the run when the plan did
   not end well.

To stop a run: mark it failed. To take a finished plan back: action `rollback` with its plan id.
"""

with DAG(
    "reassign_partitions",
    doc_md=DOC,
    schedule=None,
    is_paused_upon_creation=False,  # it only runs when somebody triggers it
    params=reassignment_params(),
    max_active_runs=16,  # across clusters; on one cluster the ledger lets one plan run
    default_args={
        "retries": 2,
        "retry_delay": timedelta(seconds=10),
        "pool": "rehome_cluster",
    },
    render_template_as_native_obj=False,
    on_failure_callback=RehomeNotifier("failed"),
    on_success_callback=RehomeNotifier("succeeded"),
    tags=["rehome", "kafka"],
) as dag:
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
