"""The plan of a run as the ledger has it, and what tasks may still do for it.

Any task may be cleared at any moment of its run, and long after. A run has one plan, whose id
follows from the run's: it is recorded once, carried on by whatever is cleared, and never made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.run import recorded_plans, steps
from rehome.run.causes.errors import TaskConflictError, TypedError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.context import FOLLOW_UP, follow_up_id

if TYPE_CHECKING:
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext

PLAN_TASK = "plan"


class UnknownPlanError(TypedError):
    """The ledger does not know the run's plan, and something else does."""


def recorded_plan(context: RunContext) -> PlanRecord | None:
    """What the ledger knows of the run's plan; None = none was recorded, so nothing was changed.

    :raises UnknownPlanError: there is a plan that this ledger does not know.
    """
    in_group = context.in_follow_up
    task = f"{FOLLOW_UP}.{PLAN_TASK}" if in_group else PLAN_TASK
    return _recorded_plan(context, context.plan_id, task)


def follow_up(context: RunContext) -> PlanRecord | None:
    """What the ledger knows of the plan that follows the run's plan up; None = there is none.

    :raises UnknownPlanError: there is one that this ledger does not know.
    """
    plan_id = follow_up_id(context.first_plan_id)
    return _recorded_plan(context, plan_id, f"{FOLLOW_UP}.{PLAN_TASK}")


def _recorded_plan(context: RunContext, plan_id: str, task: str) -> PlanRecord | None:
    record = known_plan(context, plan_id)
    if record is None and context.ti.xcom_pull(task_ids=task) == plan_id:
        raise UnknownPlanError(
            TaskEnd(
                TaskReason.RECORDED_ELSEWHERE,
                plan_id,
                ledger_id=context.ledger.ledger_id,
                task=task,
            )
        )
    return record


def known_plan(context: RunContext, plan_id: str) -> PlanRecord | None:
    """What the ledger knows of a plan; None = its files do not say that there is more to know.

    :raises UnknownPlanError: they say that another ledger was to record it, or cannot be read.
    """
    record = recorded_plans.recorded_plan(context.ledger, plan_id)
    if record is not None:
        return record
    ledger_id, directory = context.ledger.ledger_id, context.warehouse.plan(plan_id)
    try:
        made = directory.exists("summary.json")
        made_for = directory.read_json("summary.json").get("ledger_id") if made else ""
    except (OSError, ValueError, RehomeError) as error:
        raise UnknownPlanError(
            TaskEnd(TaskReason.FILES_UNREADABLE, plan_id, ledger_id=ledger_id, said=str(error))
        ) from None
    if made and made_for != ledger_id:
        end = TaskEnd(
            TaskReason.MADE_FOR_ANOTHER,
            plan_id,
            place=directory.uri,
            ledger_id=ledger_id,
            other_id=made_for or "",
        )
        raise UnknownPlanError(end)
    return None  # a planning that was interrupted before it was recorded


def carried_on(context: RunContext) -> PlanRecord | None:
    """The run's plan, to resume: it is open, or done; None = the run has made none yet.

    :raises PlanConflictError: another run has taken it up, or it has ended otherwise.
    :raises UnknownPlanError: see :func:`recorded_plan`.
    """
    record = recorded_plan(context)
    if record is not None:
        _refuse_over(context, record)
    return record


def goes_on(context: RunContext) -> bool:
    """Whether the run drives its plan by now, or has driven it to its end: it was cleared, and
    what was to be seen to before it began is behind it.

    :raises PlanConflictError: its plan has ended otherwise, or is in other hands.
    """
    plan_id = context.named_plan_id
    if plan_id is not None:
        candidate = recorded_plans.recorded_plan(context.ledger, plan_id)
        record = candidate if candidate and context.drives(candidate) else None
    else:
        record = carried_on(context)
    return record is not None and (record.state.active or record.state is PlanState.DONE)


def require_plan(context: RunContext) -> PlanRecord:
    """As :func:`carried_on`, in tasks that come after the one that records the plan.

    :raises PlanConflictError: also where there is none.
    """
    record = carried_on(context)
    if record is None:
        raise no_plan_yet(context)
    return record


def no_plan_yet(context: RunContext) -> TaskConflictError:
    """The error for a task that needs the plan, where none was recorded."""
    if context.in_follow_up:
        first, task = context.first_plan_id, f"{FOLLOW_UP}.{PLAN_TASK}"
        return TaskConflictError(TaskEnd(TaskReason.NO_FOLLOW_UP_PLAN, first, task=task))
    missing = steps.not_before(context, steps.ChainStep.PLAN)
    return missing or TaskConflictError(TaskEnd(TaskReason.NO_PLAN_YET, task=PLAN_TASK))


def not_throttled(context: RunContext, record: PlanRecord) -> TaskConflictError:
    """The error for a task that moves partitions, where no task has set the plan's throttle."""
    end = TaskEnd(TaskReason.NOT_THROTTLED, record.plan_id, record.state)
    return steps.not_before(context, steps.ChainStep.THROTTLE) or TaskConflictError(end)


def _refuse_over(context: RunContext, record: PlanRecord) -> None:
    about = record.plan_id, record.state
    if not context.drives(record):
        driver = str(record.driver)
        raise TaskConflictError(TaskEnd(TaskReason.DRIVEN_BY_OTHER, *about, run_id=driver))
    if record.state.ended and record.state is not PlanState.DONE:
        raise TaskConflictError(TaskEnd(TaskReason.PLAN_OVER, *about, said=record.cause))
