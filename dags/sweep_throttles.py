"""Takes back throttles that could not be taken back in time: of dead brokers, killed runs.

Airflow searches for DAGs in files that name it and them: this one makes its own elsewhere.
"""

from __future__ import annotations

from rehome.fleet.clusters import default_cluster
from rehome.scheduled.cluster_dag_texts import SWEEP_THROTTLES
from rehome.scheduled.cluster_dags import sweep_throttles

dag = sweep_throttles(default_cluster(), SWEEP_THROTTLES)
