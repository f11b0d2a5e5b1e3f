"""The plan of a run as the ledger has it, and what tasks may still do for it.

Any task may be cleared at any moment of its run, and long after. A run has one plan, whose id
follows from the run's: it is recorded once, carried on by whatever is cleared, and never made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.run import drivers, plan_ids, recorded_plans, steps
from rehome.run.causes.errors import TaskConflictError, TypedError
from rehome.run.causes.task_end import TaskEnd, TaskReason

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger

PLAN_TASK = "plan"


class UnknownPlanError(TypedError):
    """The ledger does not know the run's plan, and something else does."""


def recorded_plan(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord | None:
    """What the ledger knows of the run's plan; None = none was recorded, so nothing was changed.

    :raises UnknownPlanError: there is a plan that this ledger does not know.
    """
    in_group = plan_ids.in_follow_up(context)
    task = f"{plan_ids.FOLLOW_UP}.{PLAN_TASK}" if in_group else PLAN_TASK
    return _recorded_plan(context, ledger, plan_ids.plan_id_of(context), task)


def follow_up(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord | None:
    """What the ledger knows of the plan that follows the run's plan up; None = there is none.

    :raises UnknownPlanError: there is one that this ledger does not know.
    """
    plan_id = plan_ids.follow_up_id(plan_ids.first_plan_id(context))
    return _recorded_plan(context, ledger, plan_id, f"{plan_ids.FOLLOW_UP}.{PLAN_TASK}")


def _recorded_plan(
    context: Context | Mapping[str, Any], ledger: Ledger, plan_id: str, task: str
) -> PlanRecord | None:
    record = known_plan(plan_id, ledger)
    if record is None and context["ti"].xcom_pull(task_ids=task) == plan_id:
        raise UnknownPlanError(
            TaskEnd(TaskReason.RECORDED_ELSEWHERE, plan_id, ledger_id=ledger.ledger_id, task=task)
        )
    return record


def known_plan(plan_id: str, ledger: Ledger) -> PlanRecord | None:
    """What the ledger knows of a plan; None = its files do not say that there is more to know.

    :raises UnknownPlanError: they say that another ledger was to record it, or cannot be read.
    """
    record = recorded_plans.recorded_plan(ledger, plan_id)
    if record is not None:
        return record
    directory = installation.warehouse().plan(plan_id)
    try:
        made = directory.exists("summary.json")
        made_for = directory.read_json("summary.json").get("ledger_id") if made else ""
    except (OSError, ValueError, RehomeError) as error:
        raise UnknownPlanError(
            TaskEnd(
                TaskReason.FILES_UNREADABLE, plan_id, ledger_id=ledger.ledger_id, said=str(error)
            )
        ) from None
    if made and made_for != ledger.ledger_id:
        end = TaskEnd(
            TaskReason.MADE_FOR_ANOTHER,
            plan_id,
            place=directory.uri,
            ledger_id=ledger.ledger_id,
            other_id=made_for or "",
        )
        raise UnknownPlanError(end)
    return None  # a planning that was interrupted before it was recorded


def carried_on(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord | None:
    """The run's plan, to go on with: it is open, or done; None = the run has made none yet.

    :raises PlanConflictError: another run has taken it up, or it has ended otherwise.
    :raises UnknownPlanError: see :func:`recorded_plan`.
    """
    record = recorded_plan(context, ledger)
    if record is not None:
        _refuse_over(context, record)
    return record


def goes_on(context: Context | Mapping[str, Any]) -> bool:
    """Whether the run drives its plan by now, or has driven it to its end: it was cleared, and
    what was to be seen to before it began is behind it.

    :raises PlanConflictError: its plan has ended otherwise, or is in other hands.
    """
    with installation.open_ledger() as ledger:
        named = plan_ids.named_plan_id(context)
        if named is not None:
            found = recorded_plans.recorded_plan(ledger, named)
            record = found if found and drivers.drives(context, found) else None
        else:
            record = carried_on(context, ledger)
    return record is not None and (record.state.active or record.state is PlanState.DONE)


def require_plan(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord:
    """As :func:`carried_on`, in tasks that come after the one that records the plan.

    :raises PlanConflictError: also where there is none.
    """
    record = carried_on(context, ledger)
    if record is None:
        raise no_plan_yet(context)
    return record


def no_plan_yet(context: Context | Mapping[str, Any]) -> TaskConflictError:
    """The error for a task that needs the plan, where none was recorded."""
    if plan_ids.in_follow_up(context):
        first, task = plan_ids.first_plan_id(context), f"{plan_ids.FOLLOW_UP}.{PLAN_TASK}"
        return TaskConflictError(TaskEnd(TaskReason.NO_FOLLOW_UP_PLAN, first, task=task))
    missing = steps.not_before(context, steps.ChainStep.PLAN)
    return missing or TaskConflictError(TaskEnd(TaskReason.NO_PLAN_YET, task=PLAN_TASK))


def not_throttled(context: Context | Mapping[str, Any], record: PlanRecord) -> TaskConflictError:
    """The error for a task that moves partitions, where no task has set the plan's throttle."""
    end = TaskEnd(TaskReason.NOT_THROTTLED, record.plan_id, record.state)
    return steps.not_before(context, steps.ChainStep.THROTTLE) or TaskConflictError(end)


def _refuse_over(context: Context | Mapping[str, Any], record: PlanRecord) -> None:
    about = record.plan_id, record.state
    if not drivers.drives(context, record):
        driver = str(record.driver)
        raise TaskConflictError(TaskEnd(TaskReason.DRIVEN_BY_OTHER, *about, run_id=driver))
    if record.state.ended and record.state is not PlanState.DONE:
        raise TaskConflictError(TaskEnd(TaskReason.PLAN_OVER, *about, said=record.cause))
