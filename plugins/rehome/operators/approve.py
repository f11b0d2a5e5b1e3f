"""A person reads the report and decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from rehome import runtime

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.planning.plan import PlanSummary

BODY = """
Plan **{summary.plan_id}** ({summary.action}) is ready.

- {summary.partitions} partitions, {summary.replica_moves} replicas to copy, \
{summary.leader_changes} changes of leader
- {bytes_to_move} to move; no plan that ends the same moves less than {lower_bound}
{within_brokers}\
- {duration} at {rate} per broker and direction
- report: {report}

The approval holds for this very plan, hash `{summary.plan_hash}`. It lapses when one of its
partitions changes before the plan starts.
"""


class ApprovePlanOperator(ApprovalOperator):
    """Waits for a person's approval where the parameter ``approval`` asks for it.

    The approval is bound to the plan's hash, and holds for a plan that is continued later.
    Rejecting cancels the plan; nothing was changed.
    """

    ui_color = "#f3e2e9"

    def __init__(self, **kwargs: Any):
        super().__init__(subject="Approve the reassignment?", **kwargs)

    def execute(self, context: Context) -> Any:
        """Wait, or approve in the name of the run's parameters."""
        plan, request = runtime.load_plan(context)
        if runtime.continued_plan_id(context) is not None:
            self.log.info("Plan %s was approved before it started.", plan.plan_id)
            return None
        if request.approval and plan.moves:
            context["ti"].xcom_push(key="plan_hash", value=plan.plan_hash)
            self.body = approval_text(plan.summary, runtime.plan_directory(context).uri)
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


def approval_text(summary: PlanSummary, directory_uri: str) -> str:
    """What a person reads who is asked to approve a plan, as Markdown."""
    from include.planning.explanation import bytes_text

    rate, duration_s = summary.rate_bytes_per_s, summary.predicted_s
    return BODY.format(
        summary=summary,
        bytes_to_move=bytes_text(summary.bytes_to_move),
        lower_bound=bytes_text(summary.lower_bound_bytes),
        duration="unknown time" if duration_s is None else f"about {duration_s:.0f} s",
        rate="an unknown rate" if rate is None else f"{bytes_text(rate)}/s",
        report=f"{directory_uri}/report.html",
        within_brokers=_within_brokers(summary),
    )


def _within_brokers(summary: PlanSummary) -> str:
    """The line on moves between log dirs; empty where there are none."""
    from include.planning.explanation import bytes_text

    if not summary.log_dir_moves:
        return ""
    size = bytes_text(summary.log_dir_bytes)
    return (
        f"- {summary.log_dir_moves} replicas ({size}) move between log dirs of the brokers they "
        "are on, not over the network\n"
    )
