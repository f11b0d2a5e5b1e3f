"""Rehome's real DAGs, read once in each process: which tasks there are, in which order, and when
each may run. Nothing of their shape is written here.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, module_from_spec
from logging import CRITICAL
from typing import Any

from airflow.sdk import DAG, BaseOperator, TriggerRule

from rehome.execution.access.open_windows import CronWindow
from rehome.fleet.clusters import DEFAULT_CONNECTION, ScheduledCluster
from rehome.operators.base import OF_THE_RUN
from rehome.scheduled.cluster_dag_texts import REBALANCE_IN_WINDOW
from rehome.scheduled.cluster_dags import rebalance_in_window
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable

REASSIGN, CONTROL, IN_WINDOW = "reassign_partitions", "control_reassignment", "rebalance_in_window"
CARRY_OUT = (REASSIGN, IN_WINDOW)
"""DAGs whose runs make plans, and carry them out."""
FOREIGN = "foreign_reassignments"
SWEEP, COLLECT, WATCH = "sweep_throttles", "collect_snapshots", "watch_clusters"


NONE: Mapping[str, Any] = {}
TEMPLATED = ("kafka_config_id", "trigger_run_id")
"""Arguments of Rehome's operators that are templates."""


class QuietLog:
    """The log of a task: nobody reads it."""

    def _drop(self, *args: Any, **kwargs: Any) -> None:
        """Not even formatted."""

    debug = info = warning = error = exception = critical = _drop

    def getEffectiveLevel(self) -> int:
        """Above all that is said."""
        return CRITICAL


QUIET = QuietLog()


@dataclass(frozen=True)
class Graph:
    """The tasks of one DAG.

    :param order: ids of its tasks, each after those that come before it.
    :param params: that a run has where it names none.
    """

    dag: DAG
    order: tuple[str, ...]
    params: Mapping[str, Any]

    @property
    def dag_id(self) -> str:
        """Of the DAG."""
        return str(self.dag.dag_id)

    def task(self, task_id: str) -> BaseOperator:
        """The operator as the file has it; to be read only."""
        found: BaseOperator = self.dag.task_dict[task_id]
        return found

    def maps_over(self, task_id: str) -> tuple[str, str] | None:
        """Of a task that Airflow repeats: the argument that differs, and the task whose list gives
        its values; None = it is none.
        """
        task: Any = self.task(task_id)
        if not task.is_mapped:
            return None
        ((argument, given),) = task.expand_input.value.items()
        return argument, str(given.operator.task_id)

    def operator(
        self, task_id: str, run_id: str, params: Mapping[str, Any], mapped: Mapping[str, Any] = NONE
    ) -> Any:
        """An operator of its own for one process, its templates filled in.

        :param params: of the run; ``mapped``: what a task that is repeated has this time.
        """
        task: Any = self.task(task_id)
        found: Any = task.unmap(mapped) if task.is_mapped else copy.copy(task)
        found.__dict__["_cached_logger"] = QUIET
        connection = params.get("kafka_config_id", "")
        known = {"{{ run_id }}": run_id, OF_THE_RUN: connection}
        for name in (each for each in TEMPLATED if each in found.template_fields):
            text = found.__dict__[name]
            for template, value in known.items():
                text = text.replace(template, value)
            found.__dict__[name] = text
        return found

    def before(self, task_id: str) -> Collection[str]:
        """Ids of the tasks right before one."""
        return sorted(self.task(task_id).upstream_task_ids)

    def rule(self, task_id: str) -> TriggerRule:
        """When it runs."""
        return TriggerRule(self.task(task_id).trigger_rule)

    def setups(self, task_id: str) -> Collection[str]:
        """Ids of the setups right before it."""
        return [name for name in self.before(task_id) if self.task(name).is_setup]


def dag_from_file(dag_id: str) -> DAG:
    """A DAG of ``dags/`` as its file makes it, of the caller's own: the imported module's is shared
    by all of a process, and a run by ``dag.test()`` leaves its params in it.
    """
    spec = find_spec(f"dags.{dag_id}")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    dag: DAG = module.dag
    return dag


@cache
def graph_of(dag_id: str) -> Graph:
    """A DAG of ``dags/``."""
    return _graph(dag_from_file(dag_id))


@cache
def graph_in_windows(windows: tuple[CronWindow, ...]) -> Graph:
    """The DAG that carries plans out in the windows of a cluster; () = it has no windows."""
    timetable = MaintenanceWindowTimetable(*windows) if windows else None
    cluster = ScheduledCluster("", DEFAULT_CONNECTION, scheduled=True, windows=timetable)
    return _graph(rebalance_in_window(cluster, REBALANCE_IN_WINDOW))


def _graph(dag: DAG) -> Graph:
    order = tuple(str(task.task_id) for task in dag.topological_sort())
    return Graph(dag, order, dag.params.dump())


@cache
def cleared_with(dag_id: str, task_id: str) -> tuple[str, ...]:
    """Ids of the tasks that Airflow clears with a task and all that come after it: those, and the
    setups that they need.
    """
    graph = graph_of(dag_id)
    subset = graph.dag.partial_subset([task_id], include_downstream=True, include_upstream=False)
    return tuple(name for name in graph.order if name in subset.task_dict)
