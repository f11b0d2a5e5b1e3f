"""Removes plans, and rows of the ledger, that are older than they are kept."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from rehome.links import flow_picture
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.upkeep.remove_old_data import RemoveOldDataOperator
from rehome.params import keep_params_once
from rehome.task_texts import task

DOC = f"""
### Remove old data

{flow_picture("remove_old_data")}

Each day: removes plans that ended longer ago than `plan_retention_days`, with their files, reports
and Data Docs; plans that were made longer ago and never begun; and rows of the ledger that are as
old and about no plan that is there. A plan stays while it is active or handed over to a window,
while a throttle or a cordon of it is not taken back, and if it is the newest of its cluster.
The audit, events and answered questions stay: `rehome audit export` removes what it has exported.

With `dry_run` a run says which plans it would remove, and removes nothing. No cluster is asked.
"""

with DAG(
    "remove_old_data",
    dag_display_name="Remove old data",
    doc_md=DOC,
    schedule="20 3 * * *",
    catchup=False,
    max_active_runs=1,
    params={
        "dry_run": Param(
            False,
            "Only say in the log which plans would be removed.",
            type="boolean",
            title="Remove nothing",
        )
    },
    default_args={"retries": 1, "retry_delay": timedelta(minutes=1)},
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    RemoveOldDataOperator(**task("remove_old_data"))
    keep_params_once(dag)
