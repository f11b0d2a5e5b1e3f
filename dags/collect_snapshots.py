"""Takes a snapshot of a cluster on a schedule, and adds it to the history that plans read."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.rollup import RollUpSnapshotsOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.params import connection_param
from rehome.task_texts import task
from rehome.ui.links import flow_picture

DOC = f"""
### Collect snapshots

{flow_picture("collect_snapshots")}

{__doc__}
"""

with DAG(
    "collect_snapshots",
    dag_display_name="Collect snapshots",
    doc_md=DOC,
    schedule=timedelta(minutes=10),
    catchup=False,
    max_active_runs=1,
    params={"kafka_config_id": connection_param()},
    default_args={"retries": 1, "retry_delay": timedelta(seconds=30)},
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    snapshot = SnapshotClusterOperator(**task("snapshot"))
    roll_up = RollUpSnapshotsOperator(**task("roll_up"), snapshot=snapshot.output)
    snapshot >> roll_up
