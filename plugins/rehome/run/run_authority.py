"""Whether somebody who may ask stands behind a run, before it starts anything.

A user who may clear a task, write an XCom or delete a run of Airflow's may not thereby ask in
another person's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.domain.clock import utc_now
from rehome.domain.run.askers import NotAsked, NotAskedForError
from rehome.domain.run.states import PlanState
from rehome.run import drivers, plan_ids, recorded_plans, run_askers
from rehome.run.authority.refusals import told_of_refusal
from rehome.run.causes.errors import unasked_error
from rehome.run.causes.task_end import TaskReason

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.authority.requested_runs import RequestedRun


def refuse_unasked(context: Context | Mapping[str, Any]) -> None:
    """See that the run is what somebody has asked for, not too long ago.

    A run that a task has started has to have the parameters that were written down for it. What a
    plan has begun goes on to its end, also where an earlier Rehome has started it, which wrote
    nothing down.

    :raises NotAskedForError: it is not.
    """
    with installation.open_ledger() as ledger, told_of_refusal(context, ledger):
        _refuse_unasked(context, ledger)


def _refuse_unasked(context: Context | Mapping[str, Any], ledger: Ledger) -> None:
    run = context["dag_run"]
    requested = ledger.requested_run(run.dag_id, run.run_id)
    why_not = _why_not_asked(run, requested)
    if why_not is not None and not (requested is None and _first_has_begun(context, ledger)):
        raise why_not
    refused = _why_no_longer(context)
    if refused is not None and not _has_begun(context, plan_of_task(context, ledger)):
        raise refused
    if requested is not None and not ledger.begin_requested(run.dag_id, run.run_id, run.run_after):
        reason = TaskReason.CARRIED_OUT
        raise unasked_error(NotAsked.CARRIED_OUT, reason, run_id=run.run_id)


def _why_no_longer(context: Context | Mapping[str, Any]) -> NotAskedForError | None:
    """Why a run that somebody has asked for begins nothing."""
    run = context["dag_run"]
    if run_askers.is_by_backfill(run):
        return unasked_error(NotAsked.BACKFILL, TaskReason.OF_BACKFILL, run_id=run.run_id)
    return old_request_error(context) if is_old(run) else None


def is_old(run: Any) -> bool:
    """Whether a run that was cleared is older than a request counts."""
    lasting_s = installation.settings().approval_lasts_s
    if lasting_s is None or not clears_of(run):
        return False
    return bool(run.run_after < utc_now() - timedelta(seconds=lasting_s))


def clears_of(run: Any) -> int:
    """How often tasks of the run were cleared."""
    return int(getattr(run, "clear_number", 0) or 0)


def old_request_error(context: Context | Mapping[str, Any]) -> NotAskedForError:
    """The error for a run that was cleared when its request counted no longer."""
    run = context["dag_run"]
    return unasked_error(
        NotAsked.TOO_OLD,
        TaskReason.CLEARED_TOO_LATE,
        run_id=run.run_id,
        who=str(run_askers.asker_of(context)),
        at=run.run_after,
        hours=(installation.settings().approval_lasts_s or 0) / 3600,
    )


def plan_of_task(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord | None:
    """The task's plan; None = there is none yet."""
    return recorded_plans.recorded_plan(ledger, plan_ids.plan_id_of(context))


def _why_not_asked(run: Any, requested: RequestedRun | None) -> NotAskedForError | None:
    by_a_task = run_askers.is_by_a_task(run)
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


def _first_has_begun(context: Context | Mapping[str, Any], ledger: Ledger) -> bool:
    first = recorded_plans.recorded_plan(ledger, plan_ids.first_plan_id(context))
    return _has_begun(context, first)


def _has_begun(context: Context | Mapping[str, Any], record: PlanRecord | None) -> bool:
    """Whether the run carries a plan out, or has done so to its end."""
    if record is None or not drivers.drives(context, record):
        return False
    return record.state in (PlanState.RUNNING, PlanState.DONE)
