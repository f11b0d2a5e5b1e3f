"""Takes back throttles that could not be taken back in time: of dead brokers, killed runs.

Throttles that no plan has set are listed in the log and left alone.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.notifiers.notifier import RehomeNotifier
from rehome.operators.sweep import SweepThrottlesOperator
from rehome.params import connection_param

with DAG(
    "sweep_throttles",
    doc_md=__doc__,
    schedule=timedelta(minutes=10),
    catchup=False,
    max_active_runs=1,
    params={"kafka_config_id": connection_param()},
    default_args={"retries": 1, "retry_delay": timedelta(seconds=30)},
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    SweepThrottlesOperator(task_id="sweep")
