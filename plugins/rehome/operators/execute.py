"""Starts a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehome.domain.run.states import PlanState
from rehome.domain.text import count_text, names_by_value
from rehome.execution.policy_from_request import policy_for
from rehome.links import PlanPageLink
from rehome.operators import assets
from rehome.operators.base import ClusterOperator
from rehome.run import approval_terms, drivers, plan_of_run, run_authority, run_request
from rehome.run.ports import extras

if TYPE_CHECKING:
    from rehome.run.context import RunContext


class StartReassignmentOperator(ClusterOperator):
    """Makes the plan's first step: observe, decide, admit the first moves.

    A retry goes on from the ledger and the cluster; nothing is sent twice that need not be.
    """

    operator_extra_links = (PlanPageLink(),)

    def __init__(self, **kwargs: Any):
        inlets = assets.with_asset(assets.PLANS_ASSET, kwargs.pop("inlets", None))
        super().__init__(inlets=inlets, **kwargs)

    def step(self, context: RunContext) -> None:
        """One advance."""
        from rehome.account.evidence import PaceFollower
        from rehome.execution import rolling
        from rehome.execution.advance import advance

        run_authority.refuse_unasked(context)
        record = plan_of_run.require_plan(context)
        if record.state is PlanState.DONE:
            self.log.info("Plan %s is done: there is nothing to start.", record.plan_id)
            return
        if not record.state.active:
            raise plan_of_run.not_throttled(context, record)
        task = run_request.task_plan(context, record)
        approval_terms.refuse_unapproved(task)
        plan, policy = task.plan, policy_for(task.request, context.settings)
        with (
            context.gateway() as cluster,
            drivers.driving(context, cluster, record) as lease,
        ):
            first = rolling.for_first_step(policy, plan)
            done = advance(plan, lease.ledger, lease.cluster, first)
            metrics = extras().metrics.of_plan(plan, policy, context.settings)
            metrics.note_step(done)
            metrics.note_copies(context.ledger, PaceFollower(context.ledger, plan.plan_id))
        if done.on_their_way is None:
            self.log.info("Plan %s had ended before: it is %s", plan.plan_id, done.finished)
        else:
            started = count_text(len(done.admitted), "move")
            before = done.on_their_way
            self.log.info("%s started; on their way before that: %d", started, before)
        for error, names in names_by_value(done.errors, len(done.errors)).items():
            self.log.error("%s: %s", error, names)
        for cause in done.holds:
            self.log.info("Held back: %s", cause)
