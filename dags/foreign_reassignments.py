"""Describes and follows what any client has in flight; cancels it where a person asks for it."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.foreign.approve import ApproveForeignOperator
from rehome.operators.foreign.asked import APPROVE_TASK
from rehome.operators.foreign.cancel import CancelForeignOperator
from rehome.operators.foreign.look import FollowReassignmentsSensor, LookAtReassignmentsOperator
from rehome.params import foreign_params, keep_params_once
from rehome.task_texts import task
from rehome.ui.links import flow_picture

DOC = f"""
### Reassignments of other clients

{flow_picture("foreign_reassignments")}

- `describe`: the log of `look` describes what is in flight, of any client.
- `follow`: the log of `follow` shows it until all of it has ended.

- `cancel`: a person is asked about each one by name. Approved, they are cancelled, and replicas get
  the order of before where a snapshot shows it.

Choose by `topics` and `brokers`; for describe and follow nothing chosen means all.
"""

with DAG(
    "foreign_reassignments",
    dag_display_name="Reassignments of other clients",
    doc_md=DOC,
    schedule=None,
    is_paused_upon_creation=False,  # it only runs when it is triggered
    params=foreign_params(),
    default_args={"retries": 1, "retry_delay": timedelta(seconds=10)},
    render_template_as_native_obj=False,
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    look = LookAtReassignmentsOperator(**task("look"))
    follow = FollowReassignmentsSensor(**task("follow"))
    approve = ApproveForeignOperator(**task(APPROVE_TASK))
    cancel = CancelForeignOperator(**task("cancel"))
    look >> follow
    look >> approve >> cancel
    keep_params_once(dag)
