"""A DAG of each scheduled kind for each cluster of the clusters file.

While the file cannot be used, the DAGs stay without a schedule, and `dags/clusters_file.py` shows
every problem.
"""

from __future__ import annotations

from rehome.fleet.clusters import clusters_with_dags
from rehome.scheduled.cluster_dag_texts import (
    COLLECT_SNAPSHOTS,
    REBALANCE_IN_WINDOW,
    SWEEP_THROTTLES,
)
from rehome.scheduled.cluster_dags import collect_snapshots, rebalance_in_window, sweep_throttles

for cluster in clusters_with_dags():
    # Airflow registers each DAG that is made while it reads this file.
    collect_snapshots(cluster, COLLECT_SNAPSHOTS)
    sweep_throttles(cluster, SWEEP_THROTTLES)
    rebalance_in_window(cluster, REBALANCE_IN_WINDOW)
