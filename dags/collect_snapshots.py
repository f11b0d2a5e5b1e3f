"""Takes a snapshot of a cluster on a schedule, and adds it to the history that plans read.

Airflow searches for DAGs in files that name it and them: this one makes its own elsewhere.
"""

from __future__ import annotations

from rehome.fleet.clusters import default_cluster
from rehome.scheduled.cluster_dag_texts import COLLECT_SNAPSHOTS
from rehome.scheduled.cluster_dags import collect_snapshots

dag = collect_snapshots(default_cluster(), COLLECT_SNAPSHOTS)
