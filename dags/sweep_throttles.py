"""Takes back throttles that could not be taken back in time: of dead brokers, killed runs.

Its schedule works through the connection `kafka_default`; for another cluster, trigger it with that
`kafka_config_id`. It sends an alert about each plan whose run gives no sign of life. It lists
throttles that no plan has set in the log, and leaves them alone.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.sweep import SweepThrottlesOperator
from rehome.params import connection_param
from rehome.task_texts import task
from rehome.ui.links import flow_picture

DOC = f"""
### Sweep throttles

{flow_picture("sweep_throttles")}

{__doc__}
"""

with DAG(
    "sweep_throttles",
    dag_display_name="Sweep throttles",
    doc_md=DOC,
    schedule=timedelta(minutes=10),
    catchup=False,
    is_paused_upon_creation=False,  # debts are paid without an operator's doing
    max_active_runs=1,
    params={"kafka_config_id": connection_param()},
    default_args={"retries": 1, "retry_delay": timedelta(seconds=30)},
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    SweepThrottlesOperator(**task("sweep"))
