"""Whether a person who may ask stands behind a run, before it starts anything.

A user who may clear a task, write an XCom or delete a run of Airflow's may not thereby ask in
another person's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rehome.domain.clock import utc_now
from rehome.domain.run.askers import STARTED_DAG, AskerKind, NotAsked, NotAskedForError, RunDoor
from rehome.domain.run.states import PlanState
from rehome.run import recorded_plans
from rehome.run.authority.refusals import told_of_refusal
from rehome.run.causes.errors import unasked_error
from rehome.run.causes.task_end import TaskReason

if TYPE_CHECKING:
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext


def refuse_unasked(context: RunContext) -> None:
    """See that the run is what a person has asked for, not too long ago.

    A run that a task has started has to have the parameters that were written down for it. What a
    plan has begun goes on to its end, also where an earlier Rehome has started it, which wrote
    nothing down.

    :raises NotAskedForError: it is not.
    """
    with told_of_refusal(context):
        _refuse_unasked(context)


def _refuse_unasked(context: RunContext) -> None:
    run, requested = context.dag_run, context.requested
    why_not = _why_not_asked(context)
    if why_not is not None and not (requested is None and _first_has_begun(context)):
        raise why_not
    refusal = _why_no_longer(context)
    if refusal is not None and not _has_begun(context, plan_of_task(context)):
        raise refusal
    if requested is not None and not context.ledger.begin_requested(
        run.dag_id, run.run_id, run.run_after
    ):
        reason = TaskReason.CARRIED_OUT
        raise unasked_error(NotAsked.CARRIED_OUT, reason, run_id=run.run_id)


def _why_no_longer(context: RunContext) -> NotAskedForError | None:
    """Why a run that a person has asked for begins nothing."""
    run = context.dag_run
    if context.asked_as is AskerKind.BACKFILL:
        return unasked_error(NotAsked.BACKFILL, TaskReason.OF_BACKFILL, run_id=run.run_id)
    return old_request_error(context) if is_old(context) else None


def is_old(context: RunContext) -> bool:
    """Whether a run that was cleared is older than a request counts."""
    lasting_s = context.settings.approval_lasts_s
    if lasting_s is None or not context.cleared:
        return False
    return bool(context.dag_run.run_after < utc_now() - timedelta(seconds=lasting_s))


def old_request_error(context: RunContext) -> NotAskedForError:
    """The error for a run that was cleared when its request counted no longer."""
    run = context.dag_run
    return unasked_error(
        NotAsked.TOO_OLD,
        TaskReason.CLEARED_TOO_LATE,
        run_id=run.run_id,
        who=context.actor,
        at=run.run_after,
        hours=(context.settings.approval_lasts_s or 0) / 3600,
    )


def plan_of_task(context: RunContext) -> PlanRecord | None:
    """The task's plan; None = there is none yet."""
    return recorded_plans.recorded_plan(context.ledger, context.plan_id)


def _why_not_asked(context: RunContext) -> NotAskedForError | None:
    run, requested = context.dag_run, context.requested
    by_a_task = context.asked_as is AskerKind.TASK
    if requested is None and not by_a_task:
        return None
    if requested is None:
        return unasked_error(NotAsked.NO_REQUEST, TaskReason.STARTED_BY_TASK, run_id=run.run_id)
    about = {"run_id": run.run_id, "place": f"{requested.by_dag_id}/{requested.by_run_id}"}
    if not by_a_task:
        return unasked_error(NotAsked.BY_HAND, TaskReason.ID_OF_ANOTHER, **about)
    if not requested.has_conf(getattr(run, "conf", None)):
        why, reason = NotAsked.OTHER_PARAMETERS, TaskReason.OTHER_PARAMETERS
        return unasked_error(why, reason, who=str(requested.asker), **about)
    return None


def _first_has_begun(context: RunContext) -> bool:
    first = recorded_plans.recorded_plan(context.ledger, context.first_plan_id)
    return _has_begun(context, first)


def _has_begun(context: RunContext, record: PlanRecord | None) -> bool:
    """Whether the run carries a plan out, or has done so to its end."""
    if record is None or not context.drives(record):
        return False
    return record.state in (PlanState.RUNNING, PlanState.DONE)


def request_run(
    context: RunContext,
    door: RunDoor,
    run_id: str,
    conf: Mapping[str, Any],
    dag_id: str = STARTED_DAG,
) -> None:
    """Write down a run that is to be started, in the name of who has asked for the task's own run.

    :param dag_id: whose run it is to be.
    """
    from rehome.ledger.stores.authority.requested_runs import RequestedRun

    by = context.dag_run.dag_id, context.dag_run.run_id, context.task_id
    person = context.asker.person if context.asker.kind is AskerKind.PERSON else None
    context.ledger.request_run(RequestedRun(dag_id, run_id, conf, door, person, *by, utc_now()))
