"""Whether a run of a window may make a plan of its own, or only takes up one that waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.fleet import clusters
from rehome.run import plan_of_run
from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.ports import extras
from rehome.run.words.asker_words import idle_text

if TYPE_CHECKING:
    from rehome.run.context import RunContext


class NoOwnPlanError(TaskConflictError):
    """A run is asked for a plan that nobody has asked for, where windows make none."""


def may_be_made(context: RunContext) -> bool:
    """Whether the run may make a plan. One that a person, or watching, has asked for may; so may
    what follows a plan up; one that its window has started, only where the cluster's windows do.
    Where a cluster had no windows, its DAG runs, and nobody has decided that they make plans.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    if context.window_end is None or context.in_follow_up:
        return True
    run = context.dag_run
    if context.asker.person is not None or extras().heals.by_watching(run, context.ledger):
        return True
    connection = _connection(context)
    stated = clusters.own_plan(connection)
    return not context.ledger.was_windowless(connection) if stated is None else stated


def _connection(context: RunContext) -> str:
    """That of the run: no task was rendered where its end is reported."""
    return str(context.given.get("kafka_config_id") or "")


def require(context: RunContext) -> None:
    """See that the run may make a plan.

    :raises NoOwnPlanError: it may not.
    """
    if not may_be_made(context):
        stated = clusters.own_plan(_connection(context)) is not None
        raise NoOwnPlanError(TaskEnd(TaskReason.NO_OWN_PLAN, count=int(stated)))


def is_over(context: RunContext) -> bool:
    """Whether the run has no plan, and may make none."""
    return plan_of_run.recorded_plan(context) is None and not may_be_made(context)


def is_idle(context: RunContext) -> bool:
    """Whether the same is known from the ledger alone: no plan waits for the run's window."""
    from rehome.execution.control.resume import waits_for_window

    cluster_id = context.ledger.connections().get(_connection(context))
    if cluster_id is None or not is_over(context):
        return False
    active = context.ledger.active_plan(cluster_id)
    if active is not None:
        return not waits_for_window(active, context.ledger)
    return not context.ledger.handed_over(cluster_id, context.dag_run.dag_id)


def idle_note(context: RunContext) -> str:
    """What the note of such a run says."""
    cluster_id = context.ledger.connections().get(_connection(context))
    active = None if cluster_id is None else context.ledger.active_plan(cluster_id)
    return idle_text(active, clusters.own_plan(_connection(context)))
