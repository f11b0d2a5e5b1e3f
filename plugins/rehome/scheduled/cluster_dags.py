"""DAGs that are made for each cluster: the one behind `kafka_default`, and each of the file's.

Each has a DAG of its own, so that a cluster can be paused, watched and looked up by itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from rehome.fleet.clusters import ScheduledCluster
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.sweep import SWEPT_EVERY, SweepThrottlesOperator
from rehome.operators.upkeep.rollup import RollUpSnapshotsOperator
from rehome.params import connection_param, keep_params_once, window_params
from rehome.task_graph import reassignment_tasks, task_defaults
from rehome.task_texts import task

EVERY = timedelta(minutes=10)
"""Between two snapshots of a cluster."""
TAGS = ["rehome", "kafka"]


def collect_snapshots(cluster: ScheduledCluster, doc: str) -> DAG:
    """Snapshots of one cluster on a schedule.

    :param doc: what Airflow's UI shows about the DAG; the same for each.
    """
    with DAG(
        cluster.dag_id("collect_snapshots"),
        dag_display_name=_title_of("Collect snapshots", cluster),
        doc_md=doc,
        schedule=EVERY if cluster.scheduled else None,
        catchup=False,
        max_active_runs=1,
        params={"kafka_config_id": _connection(cluster)},
        default_args={"retries": 1, "retry_delay": timedelta(seconds=30)},
        on_failure_callback=RehomeNotifier("failed"),
        tags=_tags(cluster),
    ) as dag:
        snapshot = SnapshotClusterOperator(**task("snapshot"))
        roll_up = RollUpSnapshotsOperator(**task("roll_up"))
        snapshot >> roll_up
    keep_params_once(dag)
    return dag


def sweep_throttles(cluster: ScheduledCluster, doc: str) -> DAG:
    """Sweeps of one cluster on a schedule; never paused from the start."""
    with DAG(
        cluster.dag_id("sweep_throttles"),
        dag_display_name=_title_of("Sweep throttles", cluster),
        doc_md=doc,
        schedule=SWEPT_EVERY,  # in any case: throttles may be owed
        catchup=False,
        is_paused_upon_creation=False,  # what is owed is taken back without an operator
        max_active_runs=1,
        params={"kafka_config_id": _connection(cluster)},
        default_args={"retries": 1, "retry_delay": timedelta(seconds=30)},
        on_failure_callback=RehomeNotifier("failed"),
        tags=_tags(cluster),
    ) as dag:
        SweepThrottlesOperator(**task("sweep"))
    keep_params_once(dag)
    return dag


def rebalance_in_window(cluster: ScheduledCluster, doc: str) -> DAG:
    """What runs in the maintenance windows of one cluster, and what heals it. Without windows it
    only runs when it is triggered. Where it makes no plan by itself, it is not paused from the
    start.
    """
    with DAG(
        cluster.dag_id("rebalance_in_window"),
        dag_display_name=_title_of("Rebalance in maintenance windows", cluster),
        doc_md=doc,
        schedule=cluster.windows,
        catchup=False,
        is_paused_upon_creation=False if cluster.only_waiting else None,
        params={**window_params(), "kafka_config_id": _connection(cluster)},
        max_active_runs=1,
        default_args=task_defaults(),
        on_failure_callback=RehomeNotifier("failed", makes_plan=True),
        on_success_callback=RehomeNotifier("succeeded", makes_plan=True),
        tags=_tags(cluster),
    ) as dag:
        reassignment_tasks()
    return dag


def _connection(cluster: ScheduledCluster) -> Any:
    """Any may be given to the DAG that is always there; the others are for their own cluster."""
    return connection_param(cluster.connection if cluster.name else None)


def _title_of(title: str, cluster: ScheduledCluster) -> str:
    return f"{title}: {cluster.name}" if cluster.name else title


def _tags(cluster: ScheduledCluster) -> list[str]:
    return [*TAGS, f"cluster:{cluster.name}"] if cluster.name else TAGS
