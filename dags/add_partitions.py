"""Adds partitions to topics, and creates topics, with replicas where the planner places them."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.links import flow_picture
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.add_partitions import (
    ApprovePartitionsOperator,
    CreatePartitionsOperator,
    PlacePartitionsOperator,
    TryPartitionsOperator,
)
from rehome.operators.approval.without_plan import APPROVE_TASK
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.params import keep_params_once, partition_params
from rehome.task_texts import task

DOC = f"""
### Add partitions, create topics

{flow_picture("add_partitions")}

Trigger with `partitions`, the number that each topic is to have: `{{"orders": 12}}`. Or create
topics with `new_topics`: `{{"payments": {{"partitions": 12, "replication_factor": 3}}}}`.

1. `snapshot` and `place` read the cluster and place the new replicas: spread over racks, and going
   on where the topic's existing partitions left off. Replicas that you have chosen (`assignments`)
   are taken as they are, if the cluster can have them.
2. `dry_run` has the controller validate it all without doing it, and writes a report. With the
   parameter `dry_run` the run ends here.
3. `approve` waits for a person where `approval` is set.
4. `create` creates the partitions and topics, and proves by reading that they are where they were
   placed, and that new topics have their configs.

New partitions are empty: nothing is moved. They cannot be removed again, and keys of a topic map to
other partitions from then on.
"""

with DAG(
    "add_partitions",
    dag_display_name="Add partitions",
    doc_md=DOC,
    schedule=None,
    is_paused_upon_creation=False,  # it only runs when it is triggered
    params=partition_params(),
    default_args={"retries": 1, "retry_delay": timedelta(seconds=10)},
    render_template_as_native_obj=False,
    on_failure_callback=RehomeNotifier("failed"),
    on_success_callback=RehomeNotifier("succeeded"),
    tags=["rehome", "kafka"],
) as dag:
    snapshot = SnapshotClusterOperator(**task("snapshot"))
    place = PlacePartitionsOperator(**task("place"))
    dry_run = TryPartitionsOperator(**task("dry_run"))
    approve = ApprovePartitionsOperator(**task(APPROVE_TASK))
    create = CreatePartitionsOperator(**task("create"))
    snapshot >> place >> dry_run >> approve >> create
    keep_params_once(dag)
