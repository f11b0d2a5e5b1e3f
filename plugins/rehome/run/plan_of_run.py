"""The plan of a run as the ledger has it, and what tasks may still do for it.

Any task may be cleared at any moment of its run, and long after. A run has one plan, whose id
follows from the run's: it is recorded once, carried on by whatever is cleared, and never made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.domain.run.states import PlanState
from rehome.errors import STEP_UNCHANGED, PlanConflictError, RehomeError
from rehome.run import drivers, plan_ids, recorded_plans, steps

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger

PLAN_TASK = "plan"


class UnknownPlanError(RehomeError):
    """The ledger does not know the run's plan, and something else does."""

    def __init__(self, ledger: Ledger, plan_id: str, but: str) -> None:
        super().__init__(
            f"This ledger ({ledger.ledger_id}) knows no plan {plan_id}, but {but}",
            state_left="What the run has changed on the cluster is not known here.",
            next_step="See that the connection rehome_ledger, or the setting ledger_url, leads to "
            "the ledger that the run began with. Then clear this task.",
        )


def recorded(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord | None:
    """What the ledger knows of the run's plan; None = none was recorded, so nothing was changed.

    :raises UnknownPlanError: there is a plan that this ledger does not know.
    """
    in_group = plan_ids.in_follow_up(context)
    task = f"{plan_ids.FOLLOW_UP}.{PLAN_TASK}" if in_group else PLAN_TASK
    return _recorded(context, ledger, plan_ids.plan_id_of(context), task)


def follow_up(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord | None:
    """What the ledger knows of the plan that follows the run's plan up; None = there is none.

    :raises UnknownPlanError: there is one that this ledger does not know.
    """
    plan_id = plan_ids.follow_up_id(plan_ids.first_plan_id(context))
    return _recorded(context, ledger, plan_id, f"{plan_ids.FOLLOW_UP}.{PLAN_TASK}")


def _recorded(
    context: Context | Mapping[str, Any], ledger: Ledger, plan_id: str, task: str
) -> PlanRecord | None:
    record = known(plan_id, ledger)
    if record is None and context["ti"].xcom_pull(task_ids=task) == plan_id:
        raise UnknownPlanError(ledger, plan_id, f"the task {task} has recorded it")
    return record


def known(plan_id: str, ledger: Ledger) -> PlanRecord | None:
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
        raise UnknownPlanError(ledger, plan_id, f"its files cannot be read: {error}") from None
    if made and made_for != ledger.ledger_id:
        where = f"ledger {made_for}" if made_for else "no ledger that they name"
        raise UnknownPlanError(
            ledger, plan_id, f"its files are at {directory.uri}, made for {where}"
        )
    return None  # a planning that was interrupted before it was recorded


def carried_on(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord | None:
    """The run's plan, to go on with: it is open, or done; None = the run has made none yet.

    :raises PlanConflictError: another run has taken it up, or it has ended otherwise.
    :raises UnknownPlanError: see :func:`recorded`.
    """
    record = recorded(context, ledger)
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


def required(context: Context | Mapping[str, Any], ledger: Ledger) -> PlanRecord:
    """As :func:`carried_on`, in tasks that come after the one that records the plan.

    :raises PlanConflictError: also where there is none.
    """
    record = carried_on(context, ledger)
    if record is None:
        raise no_plan_yet(context)
    return record


def no_plan_yet(context: Context | Mapping[str, Any]) -> PlanConflictError:
    """The error for a task that needs the plan, where none was recorded."""
    if plan_ids.in_follow_up(context):
        return PlanConflictError(
            f"No plan has been made that follows plan {plan_ids.first_plan_id(context)} up",
            state_left=STEP_UNCHANGED,
            next_step=f"Clear the task {plan_ids.FOLLOW_UP}.{PLAN_TASK}, with what comes after "
            "it: it says whether there is anything to move.",
        )
    return steps.not_before(context, steps.ChainStep.PLAN) or PlanConflictError(
        "The run has no plan yet",
        state_left="Nothing was changed.",
        next_step=f"Clear the task {PLAN_TASK}, with what comes after it.",
    )


def not_throttled(context: Context | Mapping[str, Any], record: PlanRecord) -> PlanConflictError:
    """The error for a task that moves partitions, where no task has set the plan's throttle."""
    return steps.not_before(context, steps.ChainStep.THROTTLE) or PlanConflictError(
        f"Plan {record.plan_id} is {record.state}: no task has set its throttle yet",
        state_left="Nothing of it has started.",
        next_step="Clear the task throttle, with what comes after it.",
    )


def _refuse_over(context: Context | Mapping[str, Any], record: PlanRecord) -> None:
    if not drivers.drives(context, record):
        raise PlanConflictError(
            f"Run {record.driver} drives plan {record.plan_id} now, which is {record.state}",
            state_left=STEP_UNCHANGED,
            next_step="Follow that run.",
        )
    if record.state.ended and record.state is not PlanState.DONE:
        raise PlanConflictError(
            f"Plan {record.plan_id} of this run has ended ({record.state}: {record.cause}), and a "
            "run makes one plan only",
            state_left=STEP_UNCHANGED,
            next_step="Trigger a new run: it makes a new plan. Clearing tasks of this run does "
            "not.",
        )
