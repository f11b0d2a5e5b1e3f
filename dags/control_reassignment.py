"""Runs, pauses, resumes, slows down, cancels and rolls back a plan by its id."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.links import flow_picture
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.control import STARTED_RUN_PREFIX, ControlReassignmentOperator
from rehome.operators.requested.start_run import StartRequestedRunOperator
from rehome.params import control_params, keep_params_once
from rehome.task_texts import task

DOC = f"""
### Control a reassignment

{flow_picture("control_reassignment")}

The plan's id is in the logs and in the report of its run.

- `run`: a new run of `reassign_partitions` carries out the very plan that a dry run has made.
- `next_window`: the next run of `rebalance_in_window` on its cluster carries that plan out.
- `pause`: nothing more is started; the plan is paused when what is in flight has ended. No
  window resumes it before a person does.
- `resume`: a paused plan goes on in a new run of `reassign_partitions`.
- `change_throttle`: holds from the next poll on.
- `cancel`: cancels what is in flight of the plan, and takes its throttles back. Its run fails.
- `roll_back`: a new run of `reassign_partitions` takes back what a plan that has ended moved.
"""

with DAG(
    "control_reassignment",
    dag_display_name="Control a reassignment",
    doc_md=DOC,
    schedule=None,
    is_paused_upon_creation=False,  # it only runs when it is triggered
    params=control_params(),
    # No pool: what is to slow a plan down must not wait for the plan's own slots.
    default_args={"retries": 1, "retry_delay": timedelta(seconds=5)},
    render_template_as_native_obj=False,
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    request = ControlReassignmentOperator(**task("request"))
    start = StartRequestedRunOperator(
        **task("start"), door="control", trigger_run_id=f"{STARTED_RUN_PREFIX}{{{{ run_id }}}}"
    )
    request >> start
    keep_params_once(dag)
