"""Tasks of one run that a test carries out at any moment, as after a Clear: without a scheduler."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    DownstreamTasksSkipped,
    TaskDeferred,
)
from airflow.sdk.execution_time.context import OutletEventAccessors

from local.kafka.cluster import LocalCluster
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.run import context as run_context
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable
from tests.dags.runs import plan_without_gates

DAG_ID = "reassign_partitions"
_CHAIN = (
    *("snapshot", "plan", "dry_run", "approve", "throttle", "execute", "progress"),
    *("clear_throttle", "verify", "restore_leaders", "drained", "report"),
)
TASKS = (*_CHAIN, "verdict")
"""Of a run that nothing follows up."""
FOLLOW_UP = tuple(f"{run_context.FOLLOW_UP}.{task_id}" for task_id in _CHAIN)
WITH_FOLLOW_UP = (*_CHAIN[:-1], *FOLLOW_UP, *TASKS[-2:])
"""Every task of the DAG, as they come where a plan is followed up."""


class Outcome(enum.StrEnum):
    """How a task has ended."""

    CARRIED_ON = "carried on"
    REFUSED = "refused"
    SKIPPED = "skipped"
    DEFERRED = "deferred"


@dataclass
class ClearedRun:
    """A run of `reassign_partitions` whose tasks are called one by one.

    :param xcoms: what tasks have returned that were not cleared since; ``returned``: or were.
    :param window: opens the run's maintenance window; None = it has none.
    :param reported: what the task that ended last has said, where it did not carry on.
    :param skips: tasks that it has skipped; it is over then as if it had carried on.
    """

    ledger: Ledger
    params: Mapping[str, Any]
    run_id: str = "manual__cleared"
    window: MaintenanceWindowTimetable | None = None
    xcoms: dict[str, Any] = field(default_factory=dict)
    returned: dict[str, Any] = field(default_factory=dict)
    reported: str = ""
    skips: frozenset[str] = frozenset()

    def task(self, task_id: str, **options: Any) -> Outcome:
        """Carry one task out."""
        operator = self._operator(task_id, **options)
        self.xcoms.pop(task_id, None)  # Airflow takes them back when a task begins
        self.reported, self.skips = "", frozenset()
        try:
            self.xcoms[task_id] = operator.execute(self._context(operator))
            self.returned[task_id] = self.xcoms[task_id]
        except TaskDeferred:
            return Outcome.DEFERRED
        except DownstreamTasksSkipped as skipped:
            self.skips = frozenset(str(task) for task in skipped.tasks)
        except AirflowSkipException as reported:
            self.reported = str(reported)
            return Outcome.SKIPPED
        except (AirflowException, AirflowFailException) as error:
            self.reported = str(error)
            return Outcome.REFUSED
        return Outcome.CARRIED_ON

    def tasks(self, *task_ids: str) -> dict[str, Outcome]:
        """Carry out several, one after the other."""
        return {task_id: self.task(task_id) for task_id in task_ids}

    def through(self, last: str, first: str = TASKS[0]) -> None:
        """Run every task up to this one; none is cleared, and progress waits."""
        tasks = TASKS if last in TASKS and first in TASKS else WITH_FOLLOW_UP
        for task_id in tasks[tasks.index(first) : tasks.index(last) + 1]:
            options = {"deferrable": False} if task_id.endswith("progress") else {}
            assert self.task(task_id, **options) is Outcome.CARRIED_ON, (task_id, self.reported)

    def record(self) -> PlanRecord:
        return self.ledger.plan(self.returned["plan"])

    def follow_up(self) -> PlanRecord:
        return self.ledger.plan(self.returned[f"{run_context.FOLLOW_UP}.plan"])

    def _xcom(self, *, task_ids: str) -> Any:
        return self.xcoms.get(task_ids)

    def _operator(self, task_id: str, **options: Any) -> Any:
        from dags.reassign_partitions import dag

        task = task_id.removeprefix(f"{run_context.FOLLOW_UP}.")
        if task == "drained":  # it skips what comes after it
            drained = copy(dag.get_task(task_id))
            drained.kafka_config_id = "kafka_default"
            return drained
        if task == "snapshot":
            options["for_request"] = True
        if task not in ("plan", "approve"):
            options["kafka_config_id"] = "kafka_default"
        return type(dag.get_task(task_id))(task_id=task_id, **options)

    def _context(self, operator: Any) -> dict[str, Any]:
        run = SimpleNamespace(
            dag_id=DAG_ID,
            run_id=self.run_id,
            run_after=datetime(2030, 1, 1, tzinfo=UTC),
            data_interval_end=None,
            run_type="manual",
            triggering_user_name="ann",
        )
        attempt = SimpleNamespace(
            try_number=1, max_tries=0, xcom_pull=self._xcom, xcom_push=_push, map_index=-1
        )
        params = {"kafka_config_id": "kafka_default", **self.params}
        context = {
            "dag_run": run,
            "params": params,
            "ti": attempt,
            "task": operator,
            "outlet_events": OutletEventAccessors(),
        }
        if self.window is not None:
            context["dag"] = SimpleNamespace(timetable=self.window, tasks=(operator,))
        return context


def _push(**_: Any) -> None:
    """Ignore what tasks push apart from what they return."""


def reach(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tasks reach a cluster, and plan without Spark."""
    kafka = {"conn_type": "kafka", "extra": cluster.client_settings()}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    spark = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    plan_without_gates(monkeypatch)
