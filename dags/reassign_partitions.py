"""Moves partitions between brokers: drain, rebalance, replication factor, racks, or by hand."""

from __future__ import annotations

from airflow.sdk import DAG

from rehome.links import flow_picture
from rehome.notifiers.run_end import RehomeNotifier
from rehome.params import presets_table, reassignment_params
from rehome.task_graph import reassignment_tasks, task_defaults

DOC = f"""
### Reassign partitions

{flow_picture("reassign_partitions")}

Trigger with an action and its parameters; the form explains each. Without an action, or a preset
that has one, nothing is started. What happens:

1. `snapshot`, `plan`, `dry_run` only read. Their logs, and the report whose place `dry_run`
   prints, show what would be moved and why. With `dry_run` the run ends here.
2. `approve` waits for a person where `approval` is set.
3. `throttle` … `clear_throttle` change the cluster. Whatever ends the run, also a kill or a
   *mark failed*, `clear_throttle` cancels what is still in flight of this plan and puts every
   throttle back as it was before.
4. `verify` proves each partition from a fresh read. After a drain `drained` proves that its
   brokers are empty: what has appeared there since the plan was made is moved away by the tasks of
   the group `follow_up`, by a plan of its own; `approve` asks again there. Else they are skipped.
5. `verdict` fails the run when the plan did not end well, or drained brokers are not empty.

Presets fill the fields that you leave at their default; what you change stays as you write it:

{presets_table()}

A run has one plan. Whatever of it you clear carries that plan on, or says why not; for a new plan,
trigger a new run.

To stop a run: mark it failed. To take a finished plan back: action `rollback` with its plan id.
To resume a paused plan: its plan id, with the throttle and the window of the new run. To carry
out the very plan of a dry run: `control_reassignment` with action `run`.
`control_reassignment` also pauses, resumes, slows down, cancels and rolls back a plan by its id.
"""

with DAG(
    "reassign_partitions",
    dag_display_name="Reassign partitions",
    doc_md=DOC,
    schedule=None,
    is_paused_upon_creation=False,  # it only runs when it is triggered
    params=reassignment_params(),
    max_active_runs=16,  # across clusters; on one cluster the ledger lets one plan run
    default_args=task_defaults(),
    render_template_as_native_obj=False,
    on_failure_callback=RehomeNotifier("failed", makes_plan=True),
    on_success_callback=RehomeNotifier("succeeded", makes_plan=True),
    tags=["rehome", "kafka"],
) as dag:
    reassignment_tasks()
