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

REASSIGN, CONTROL = "reassign_partitions", "control_reassignment"
SWEEP, COLLECT, WATCH = "sweep_throttles", "collect_snapshots", "watch_clusters"


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

    def operator(self, task_id: str, run_id: str, params: Mapping[str, Any]) -> Any:
        """An operator of its own for one process, its templates filled in.

        :param params: of the run.
        """
        found: Any = copy.copy(self.task(task_id))
        found.__dict__["_cached_logger"] = QUIET
        known = {"{{ run_id }}": run_id, "{{ params.kafka_config_id }}": params["kafka_config_id"]}
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
    dag = dag_from_file(dag_id)
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
