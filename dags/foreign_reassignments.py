"""Describes and follows what any client has in flight on a cluster."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.foreign.look import FollowReassignmentsSensor, LookAtReassignmentsOperator
from rehome.params import foreign_params, keep_params_once
from rehome.task_texts import task
from rehome.ui.links import flow_picture

DOC = f"""
### Reassignments of other clients

{flow_picture("foreign_reassignments")}

- `describe`: the log of `look` describes what is in flight, of any client.
- `follow`: the log of `follow` shows it until all of it has ended.

Choose by `topics` and `brokers`; nothing chosen means all.
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
    look >> follow
    keep_params_once(dag)
