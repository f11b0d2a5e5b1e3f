"""Whether a run of a window may make a plan of its own, or only takes up one that waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rehome.fleet import clusters, watch_runs
from rehome.run import plan_ids, plan_of_run, run_askers, run_params
from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.words.asker_words import idle_text

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.ledger.store import Ledger


class NoOwnPlanError(TaskConflictError):
    """A run is asked for a plan that nobody has asked for, where windows make none."""


def may_be_made(context: Context | Mapping[str, Any], ledger: Ledger) -> bool:
    """Whether the run may make a plan. One that a person, or watching, has asked for may; so may
    what follows a plan up; one that its window has started, only where the cluster's windows do.
    Where a cluster had no windows, its DAG runs, and nobody has decided that they make plans.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    if run_params.window_end_of(context) is None or plan_ids.in_follow_up(context):
        return True
    run = context["dag_run"]
    if run_askers.asker_of(context).person is not None or watch_runs.by_watching(run, ledger):
        return True
    connection = _connection(context)
    stated = clusters.own_plan(connection)
    return not ledger.was_windowless(connection) if stated is None else stated


def _connection(context: Context | Mapping[str, Any]) -> str:
    """That of the run: no task was rendered where its end is reported."""
    return str((context.get("params") or {}).get("kafka_config_id") or "")


def require(context: Context | Mapping[str, Any], ledger: Ledger) -> None:
    """See that the run may make a plan.

    :raises NoOwnPlanError: it may not.
    """
    if not may_be_made(context, ledger):
        stated = clusters.own_plan(_connection(context)) is not None
        raise NoOwnPlanError(TaskEnd(TaskReason.NO_OWN_PLAN, count=int(stated)))


def is_over(context: Context | Mapping[str, Any], ledger: Ledger) -> bool:
    """Whether the run has no plan, and may make none."""
    return plan_of_run.recorded_plan(context, ledger) is None and not may_be_made(context, ledger)


def is_idle(context: Context | Mapping[str, Any], ledger: Ledger) -> bool:
    """Whether the same is known from the ledger alone: no plan waits for the run's window."""
    from rehome.execution.control.resume import waits_for_window

    cluster_id = ledger.connections().get(_connection(context))
    if cluster_id is None or not is_over(context, ledger):
        return False
    active = ledger.active_plan(cluster_id)
    if active is not None:
        return not waits_for_window(active, ledger)
    return not ledger.handed_over(cluster_id, context["dag_run"].dag_id)


def idle_note(context: Context | Mapping[str, Any], ledger: Ledger) -> str:
    """What the note of such a run says."""
    cluster_id = ledger.connections().get(_connection(context))
    active = None if cluster_id is None else ledger.active_plan(cluster_id)
    return idle_text(active, clusters.own_plan(_connection(context)))
