"""No DAG: a clusters file that cannot be used is an import error of this file in Airflow.

It names every problem. All DAGs stay: see dags/clusters.py. Without a file, the settings of windows
make its one entry.
"""

from __future__ import annotations

from rehome.fleet.clusters import DEFAULT_CONNECTION, window_entry

window_entry(DEFAULT_CONNECTION)
