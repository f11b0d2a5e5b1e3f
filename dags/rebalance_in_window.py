"""Rebalances, or does what else its parameters say, in maintenance windows.

Airflow searches for DAGs in files that name it and them: this one makes its own elsewhere.
"""

from __future__ import annotations

from rehome.fleet.clusters import default_cluster
from rehome.scheduled.cluster_dag_texts import REBALANCE_IN_WINDOW
from rehome.scheduled.cluster_dags import rebalance_in_window

dag = rebalance_in_window(default_cluster(), REBALANCE_IN_WINDOW)
