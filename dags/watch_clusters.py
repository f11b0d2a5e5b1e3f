"""Judges each fresh snapshot of each cluster, and starts what the watch rules allow."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.links import flow_picture
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.assets import SNAPSHOTS_ASSET
from rehome.operators.requested.start_run import StartRequestedRunOperator
from rehome.operators.send_alerts import SendAlertsOperator
from rehome.operators.watch import AllJudgedOperator, WatchClustersOperator
from rehome.task_texts import task

DOC = f"""
### Watch clusters

{flow_picture("watch_clusters")}

Runs when a snapshot of any cluster has been taken: `collect_snapshots` takes one every ten minutes.
It opens and closes findings in the ledger by the cluster's watch rules, and sends alerts. Where the
rules say `propose` or `heal`, it triggers a run of `reassign_partitions`. By default they say
`watch`: nothing is started. The run fails where a cluster could not be judged. A run that is
triggered by hand judges the newest snapshot of each cluster whose connection is still there, and
has tried again what went wrong.
"""

with DAG(
    "watch_clusters",
    dag_display_name="Watch clusters",
    doc_md=DOC,
    schedule=[SNAPSHOTS_ASSET],
    catchup=False,
    max_active_runs=1,  # snapshots are judged in the order in which they were taken
    default_args={"retries": 1, "retry_delay": timedelta(seconds=30)},
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    watch = WatchClustersOperator(**task("watch"))
    start = StartRequestedRunOperator.partial(**task("start_remedy"), door="watch").expand(
        trigger_run_id=watch.output
    )
    judged = AllJudgedOperator(**task("all_judged"))
    send = SendAlertsOperator(**task("send_alerts"), trigger_rule="all_done")
    watch >> [start, judged, send]
