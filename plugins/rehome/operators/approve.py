"""A person reads the report and decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from rehome import runtime

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

BODY = """
Plan **{{ ti.xcom_pull(task_ids='plan') }}** is ready.
Report: {{ ti.xcom_pull(task_ids='dry_run') }}

The log of `dry_run` shows the same numbers and findings. The approval holds for this very plan
(hash {{ ti.xcom_pull(task_ids='approve', key='plan_hash') or 'in the log of plan' }}); it lapses
when the partitions change before the plan starts.
"""


class ApprovePlanOperator(ApprovalOperator):
    """Waits for a person's approval where the parameter ``approval`` asks for it.

    The approval is bound to the plan's hash. Rejecting cancels the plan; nothing was changed.
    """

    ui_color = "#f3e2e9"

    def __init__(self, **kwargs: Any):
        super().__init__(subject="Approve the reassignment?", body=BODY, **kwargs)

    def execute(self, context: Context) -> Any:
        """Wait, or approve in the name of the run's parameters."""
        plan, request = runtime.load_plan(context)
        if request.approval:
            context["ti"].xcom_push(key="plan_hash", value=plan.plan_hash)
            return super().execute(context)
        return self._approve(plan.plan_id, plan.plan_hash, runtime.actor_of(context))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record who decided what."""
        from include.execution.model import PlanState

        plan_id = runtime.plan_id_of(context)
        user = event.get("responded_by_user") or {}
        actor = str(user.get("name") or user.get("id") or "unknown")
        if event.get("chosen_options") == [self.REJECT]:
            with runtime.open_ledger() as ledger:
                ledger.transition(plan_id, PlanState.CANCELLED, "rejected", actor)
            self.log.info("Plan %s was rejected by %s; nothing was changed.", plan_id, actor)
        result = super().execute_complete(context, event)
        seen = context["ti"].xcom_pull(task_ids=self.task_id, key="plan_hash")
        self._approve(plan_id, str(seen), actor)
        return result

    def _approve(self, plan_id: str, plan_hash: str, actor: str) -> None:
        with runtime.plain_errors(), runtime.open_ledger() as ledger:
            ledger.approve(plan_id, plan_hash, actor)
        self.log.info("Plan %s approved by %s (hash %s)", plan_id, actor, plan_hash)
