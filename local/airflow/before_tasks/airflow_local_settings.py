"""Imports what tasks need before they are forked: Airflow reads this module when it starts.

The scheduler forks a process for each task, the DAG processor one for each file. Two thirds of the
processor time of a task of a second would be imports.
"""

from __future__ import annotations

import importlib
import sys

__all__: list[str] = []  # it would become part of Airflow's own settings

_FORKING = {"scheduler", "dag-processor"}
_HEAVY = (
    "airflow.providers.apache.spark.hooks.spark_submit",
    "rehome.cluster.gateway",
    "rehome.ledger.store",
    "rehome.warehouse",
    "psycopg",
)

if _FORKING & set(sys.argv):
    for _name in _HEAVY:
        importlib.import_module(_name)
