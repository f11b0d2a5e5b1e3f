"""Moves partitions between brokers: drain, rebalance, replication factor, racks, or by hand."""

from __future__ import annotations

from airflow.sdk import DAG

from rehome.graph import reassign, task_defaults
from rehome.notifiers.notifier import RehomeNotifier
from rehome.params import reassignment_params

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
To go on with a paused plan: its plan id, with the throttle and the window of the new run.
`control_reassignment` pauses, resumes, slows down, cancels and rolls back a plan by its id.
"""

with DAG(
    "reassign_partitions",
    doc_md=DOC,
    schedule=None,
    is_paused_upon_creation=False,  # it only runs when somebody triggers it
    params=reassignment_params(),
    max_active_runs=16,  # across clusters; on one cluster the ledger lets one plan run
    default_args=task_defaults(),
    render_template_as_native_obj=False,
    on_failure_callback=RehomeNotifier("failed"),
    on_success_callback=RehomeNotifier("succeeded"),
    tags=["rehome", "kafka"],
) as dag:
    reassign()
