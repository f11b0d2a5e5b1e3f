"""Plans the clusters whose window comes next, in one Spark application; carries nothing out."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.fleet.due_clusters import DAG_ID
from rehome.links import flow_picture
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.plan_fleet import PlanFleetOperator
from rehome.params import fleet_params, keep_params_once
from rehome.task_texts import task
from rehome.trigger_check import POOL

DOC = f"""
### Plan a fleet

{flow_picture("plan_fleet")}

Each hour: plans a rebalance of every cluster of the clusters file that is due, by its targets, caps
and broker sets, on its newest snapshot. A cluster is due when its next window opens within
12 hours, and it has a fresh snapshot, no active plan and no plan for that window yet.

**Nothing is carried out.** Each plan is one of a dry run: read it on its page, and hand it over to
the window with *Next window*, or with `control_reassignment`. A window that is given none makes a
plan of its own, unless `own_plan` of its cluster is false.
"""

with DAG(
    DAG_ID,
    dag_display_name="Plan a fleet",
    doc_md=DOC,
    schedule="40 * * * *",
    catchup=False,
    max_active_runs=1,
    params=fleet_params(),
    default_args={"retries": 1, "retry_delay": timedelta(minutes=1), "pool": POOL},
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    PlanFleetOperator(**task("plan_fleet"))
    keep_params_once(dag)
