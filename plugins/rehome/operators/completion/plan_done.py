"""What comes after a reassignment, in a DAG of people's own, comes after this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.sdk import TriggerRule

from rehome.domain.run.states import PlanState
from rehome.run import plan_of_run
from rehome.run.causes.operator import RecordedOperator

if TYPE_CHECKING:
    from rehome.run.context import RunContext


class PlanDoneOperator(RecordedOperator):
    """Succeeds where the run's plan is done; else it is skipped, and so is what comes after it.

    It has tasks before it that are skipped in most runs, so it waits for them without a success.
    Returns the plan's id.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS, **kwargs)

    def step(self, context: RunContext) -> str:
        """Look in the ledger."""
        record = plan_of_run.require_plan(context)
        follow_up = plan_of_run.follow_up(context)
        for plan in (record, *([] if follow_up is None else [follow_up])):
            if plan.state is not PlanState.DONE:
                raise AirflowSkipException(f"Plan {plan.plan_id} is {plan.state}: {plan.cause}.")
        return record.plan_id
