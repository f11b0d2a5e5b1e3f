"""What the run's plan is asked for, within the policy of the run's connection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.clock import utc_now
from rehome.domain.request.limits import with_limits
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.event_kind import EventKind
from rehome.errors import InvalidRequestError
from rehome.execution.completion.follow_up import follow_up_request
from rehome.fleet import plan_settings
from rehome.run import recorded_plans
from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.context import FOLLOW_UP
from rehome.run.words.plan_words import window_closed_text

if TYPE_CHECKING:
    from rehome.domain.plan.plan import Plan
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext
    from rehome.warehouse import PlanDirectory


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A task that acts on a plan, with what it has read of it: read once, and passed on.

    :param record: of the plan, as it was when the task read it.
    :param plan: its moves, which are those that were recorded; ``request``: see
        :func:`plan_request`.
    """

    context: RunContext
    record: PlanRecord
    plan: Plan
    request: ReassignmentRequest

    @property
    def directory(self) -> PlanDirectory:
        """The files of the plan."""
        return self.context.warehouse.plan(self.record.plan_id)

    def with_record(self, record: PlanRecord) -> TaskPlan:
        """The same, where the plan was read once more."""
        return replace(self, record=record)


def task_plan(context: RunContext, record: PlanRecord) -> TaskPlan:
    """The task with its plan, which its record names.

    :raises PlanChangedError: its files hold another one than was recorded.
    """
    plan = recorded_plans.recorded_moves(context.ledger, record)
    return TaskPlan(context, record, plan, _request_of_plan(context, record))


def request_of(context: RunContext) -> ReassignmentRequest:
    """The run's parameters, validated as a whole, within the policy of the run's connection.

    ``window_end`` may lie in the past by now. In a maintenance window it is the window's end; and
    never later than the end of the window in which the policy allows the run. A follow-up is asked
    for what the plan was that it follows up, with what is left of the budget, and with the caps and
    broker sets that the cluster has by then.

    :raises InvalidRequestError: lists every problem.
    """
    begun = context.dag_run.run_after
    if context.in_follow_up:
        return policy_of(context).request_within(_follow_up_request(context), begun)
    params, end = dict(context.params), context.window_end
    if end is not None:
        params["window_end"] = end
    settings = context.settings
    request = with_limits(parse_request(params, now=begun), settings.caps, settings.broker_sets)
    return policy_of(context).request_within(request, begun)


def refuse_closed_window(context: RunContext) -> None:
    """See that the run's window, if it has one, is open.

    :raises InvalidRequestError: it has closed.
    """
    ends = request_of(context).window_end
    if ends is not None and ends <= utc_now():
        raise InvalidRequestError([window_closed_text(ends)])


def plan_request(context: RunContext) -> ReassignmentRequest:
    """What the run's plan was asked for, within the bounds of this run.

    Of a plan that was made by another run, the ledger knows what it is for: the parameters of the
    run that carries it out say how, and are recorded with it when that takes it up.
    """
    return _request_of_plan(context, context.ledger.plan(context.plan_id))


def _request_of_plan(context: RunContext, record: PlanRecord) -> ReassignmentRequest:
    if not context.drives(record):
        return request_of(context)
    own = recorded_plans.recorded_request(record)
    try:
        if not context.in_follow_up and record.plan_id != context.new_plan_id:
            own = replace(own, approval=own.approval or request_of(context).approval)
        begun = context.dag_run.run_after
        return context.policy_for(record).request_within(own, begun)
    except ClustersFileError:
        if not record.state.active:
            raise
        return own  # what runs goes on, within the bounds that it began with


def policy_of(context: RunContext) -> ConnectionPolicy:
    """What may be done through the task's connection, or the one that the run's parameters name,
    on the cluster that it leads to; and for the run's plan, where there is one.
    """
    plan = recorded_plans.recorded_plan(context.ledger, context.plan_id)
    return context.policy_for(plan)


def _follow_up_request(context: RunContext) -> ReassignmentRequest:
    plan_id, ledger = context.first_plan_id, context.ledger
    record = ledger.plan(plan_id)
    if EventKind.FOLLOWED_UP not in {event.kind for event in ledger.events(plan_id)}:
        group = (FOLLOW_UP,)
        raise TaskConflictError(TaskEnd(TaskReason.NOT_FOLLOWED_UP, plan_id, names=group))
    plan = recorded_plans.recorded_moves(ledger, record)
    request = recorded_plans.recorded_request(record)
    request = follow_up_request(request, plan, record.requested_rate_bytes_per_s)
    # Who has approved the first plan was told that the second one is asked about, too.
    request = replace(request, approval=request.approval or record.approver is not None)
    directory = context.warehouse.plan(plan_id)
    return plan_settings.renew_request(request, directory, context.connection)
