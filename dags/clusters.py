"""A DAG of each scheduled kind for each cluster of the clusters file.

A file that cannot be used ends the import of this DAG file only: Airflow shows every problem among
its import errors, and all other DAGs stay.
"""

from __future__ import annotations

from rehome.clusters import named_clusters
from rehome.scheduled import collect_snapshots, rebalance_in_window, sweep_throttles
from rehome.scheduled_texts import COLLECT_SNAPSHOTS, REBALANCE_IN_WINDOW, SWEEP_THROTTLES

for cluster in named_clusters():
    # Airflow registers each DAG that is made while it reads this file.
    collect_snapshots(cluster, COLLECT_SNAPSHOTS)
    sweep_throttles(cluster, SWEEP_THROTTLES)
    if cluster.windows is not None:
        rebalance_in_window(cluster, REBALANCE_IN_WINDOW)
