"""Rebalances, or does what else its parameters say, in maintenance windows."""

from __future__ import annotations

from airflow.sdk import DAG

from rehome.notifiers.run_end import RehomeNotifier
from rehome.params import window_params
from rehome.task_graph import reassign, task_defaults
from rehome.timetables.maintenance_window import maintenance_windows
from rehome.ui.links import flow_picture

DOC = f"""
### Rebalance in a window

{flow_picture("rebalance_in_window")}

A run starts when a window opens, and has nothing in flight when it closes. What does not fit
waits: the next window goes on with the same plan, unless another client has moved its partitions
meanwhile; then it makes a new one. A plan that a person has paused waits for that person.
A plan of a dry run that a person has handed over to the next window comes before one of its own.

Windows are set by `REHOME_WINDOW_CRON`, `REHOME_WINDOW_DURATION_S` and `REHOME_WINDOW_TIMEZONE`
in the environment. A run triggered by hand gets the window that was opened last, and is refused
when that has closed.
"""

with DAG(
    "rebalance_in_window",
    dag_display_name="Rebalance in maintenance windows",
    doc_md=DOC,
    schedule=maintenance_windows(),
    catchup=False,
    params=window_params(),
    max_active_runs=1,
    default_args=task_defaults(),
    on_failure_callback=RehomeNotifier("failed", makes_plan=True),
    on_success_callback=RehomeNotifier("succeeded", makes_plan=True),
    tags=["rehome", "kafka"],
) as dag:
    reassign()
