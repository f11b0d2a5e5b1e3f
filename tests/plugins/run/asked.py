"""Runs as tasks see them, of a ledger that knows who has asked for what."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from airflow.sdk.api.datamodels._generated import DagRunType

from rehome.domain.run.askers import STARTED_DAG, RunDoor
from rehome.ledger.stores.authority.requested_runs import RequestedRun

CONF = {"plan_id": "p1", "kafka_config_id": "kafka_default"}
BEGUN = datetime.now(UTC).replace(microsecond=1)


def run_of(run_id: str, **given: Any) -> SimpleNamespace:
    """A run of `reassign_partitions` that ann has triggered by hand."""
    values = {
        "dag_id": STARTED_DAG,
        "run_id": run_id,
        "run_type": DagRunType.MANUAL,
        "triggering_user_name": "ann",
        "run_after": BEGUN,
        "data_interval_end": None,
        "clear_number": 0,
        "conf": dict(CONF),
    }
    return SimpleNamespace(**{**values, **given})


def by_a_task(run_id: str, **given: Any) -> SimpleNamespace:
    """A run that a task has started: Airflow gives it the user of the task's own run."""
    return run_of(run_id, run_type=DagRunType.OPERATOR_TRIGGERED, **given)


def asked_for(run_id: str, **given: Any) -> RequestedRun:
    """What bob has asked for through `control_reassignment`."""
    values = {
        "conf": dict(CONF),
        "door": RunDoor.CONTROL,
        "asked_by": "bob",
        "by_dag_id": "control_reassignment",
        "by_run_id": "manual__1",
        "by_task_id": "request",
        "at": BEGUN,
    }
    return RequestedRun(STARTED_DAG, run_id, **{**values, **given})


def task_of(run: SimpleNamespace, task_id: str = "snapshot", **params: Any) -> Any:
    """The context of one of its tasks."""
    return {
        "dag_run": run,
        "task": SimpleNamespace(task_id=task_id),
        "params": params,
        "ti": None,
    }


BY_ANN = task_of(run_of("r1"))
"""Of a task in a run that ann has triggered."""
