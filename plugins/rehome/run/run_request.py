"""What the run's plan is asked for, within the policy of the run's connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.clock import utc_now
from rehome.domain.request.limits import with_limits
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.event_kind import EventKind
from rehome.errors import InvalidRequestError
from rehome.execution.completion.follow_up import follow_up_request
from rehome.fleet import clusters, plan_settings, policies
from rehome.run import drivers, plan_ids, recorded_plans, run_params
from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.words.plan_words import window_closed_text

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.domain.plan.plan import Plan
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.warehouse import PlanDirectory


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A task that acts on a plan, with what it has read of it: read once, and passed on.

    :param record: of the plan, as it was when the task read it.
    :param plan: its moves, which are those that were recorded; ``request``: see
        :func:`plan_request`.
    """

    context: Context | Mapping[str, Any]
    ledger: Ledger
    record: PlanRecord
    plan: Plan
    request: ReassignmentRequest

    @property
    def directory(self) -> PlanDirectory:
        """The files of the plan."""
        return installation.warehouse().plan(self.record.plan_id)

    def with_record(self, record: PlanRecord) -> TaskPlan:
        """The same, where the plan was read once more."""
        return replace(self, record=record)


def task_plan(context: Context | Mapping[str, Any], ledger: Ledger, record: PlanRecord) -> TaskPlan:
    """The task with its plan, which its record names.

    :raises PlanChangedError: its files hold another one than was recorded.
    """
    plan = recorded_plans.recorded_moves(ledger, record)
    return TaskPlan(context, ledger, record, plan, _request_of_plan(context, ledger, record))


def request_of(context: Context | Mapping[str, Any]) -> ReassignmentRequest:
    """The run's parameters, validated as a whole, within the policy of the run's connection.

    ``window_end`` may lie in the past by now. In a maintenance window it is the window's end; and
    never later than the end of the window in which the policy allows the run. A follow-up is asked
    for what the plan was that it follows up, with what is left of the budget, and with the caps and
    broker sets that the cluster has by then.

    :raises InvalidRequestError: lists every problem.
    """
    begun = context["dag_run"].run_after
    if plan_ids.in_follow_up(context):
        follow_up = _follow_up_request(plan_ids.first_plan_id(context))
        return policy_of(context).bounded(follow_up, begun)
    params, end = dict(run_params.params_of(context)), run_params.window_end_of(context)
    if end is not None:
        params["window_end"] = end
    settings = installation.settings()
    request = with_limits(parse_request(params, now=begun), settings.caps, settings.broker_sets)
    return policy_of(context).bounded(request, begun)


def refuse_closed_window(context: Context | Mapping[str, Any]) -> None:
    """See that the run's window, if it has one, is open.

    :raises InvalidRequestError: it has closed.
    """
    ends = request_of(context).window_end
    if ends is not None and ends <= utc_now():
        raise InvalidRequestError([window_closed_text(ends)])


def plan_request(context: Context | Mapping[str, Any]) -> ReassignmentRequest:
    """What the run's plan was asked for, within the bounds of this run.

    Of a plan that was made by another run, the ledger knows what it is for: the parameters of the
    run that carries it out say how, and are recorded with it when that takes it up.
    """
    with installation.open_ledger() as ledger:
        return _request_of_plan(context, ledger, ledger.plan(plan_ids.plan_id_of(context)))


def _request_of_plan(
    context: Context | Mapping[str, Any], ledger: Ledger, record: PlanRecord
) -> ReassignmentRequest:
    if not drivers.drives(context, record):
        return request_of(context)
    own = recorded_plans.recorded_request(record)
    try:
        if not plan_ids.in_follow_up(context) and record.plan_id != plan_ids.new_plan_id(context):
            own = replace(own, approval=own.approval or request_of(context).approval)
        begun = context["dag_run"].run_after
        return policy_for(context, ledger, record).bounded(own, begun)
    except ClustersFileError:
        if not record.state.active:
            raise
        return own  # what runs goes on, within the bounds that it began with


def policy_of(context: Context | Mapping[str, Any]) -> ConnectionPolicy:
    """What may be done through the task's connection, or the one that the run's parameters name,
    on the cluster that it leads to; and for the run's plan, where there is one.
    """
    with installation.open_ledger() as ledger:
        plan = recorded_plans.recorded_plan(ledger, plan_ids.plan_id_of(context))
        return policy_for(context, ledger, plan)


def policy_for(
    context: Context | Mapping[str, Any], ledger: Ledger, plan: PlanRecord | None
) -> ConnectionPolicy:
    """The same for a plan that was read already; None = there is none."""
    connection = clusters.connection_of(context)
    known = ledger.connections().get(connection) if plan is None else plan.cluster_id
    return policies.policy_of_cluster(ledger, known, connection, plan)


def _follow_up_request(plan_id: str) -> ReassignmentRequest:
    with installation.open_ledger() as ledger:
        record = ledger.plan(plan_id)
        if EventKind.FOLLOWED_UP not in {event.kind for event in ledger.events(plan_id)}:
            group = (plan_ids.FOLLOW_UP,)
            raise TaskConflictError(TaskEnd(TaskReason.NOT_FOLLOWED_UP, plan_id, names=group))
        plan = recorded_plans.recorded_moves(ledger, record)
    request = recorded_plans.recorded_request(record)
    request = follow_up_request(request, plan, record.requested_rate_bytes_per_s)
    # Who has approved the first plan was told that the second one is asked about, too.
    request = replace(request, approval=request.approval or record.approver is not None)
    return plan_settings.renew_request(request, installation.warehouse().plan(plan_id))
