"""What is approved: the throttle, the terms, and by whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rehome.domain.clock import utc_now
from rehome.domain.run.approval.effects import Effects
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.askers import Askers
from rehome.domain.run.states import Control, PlanState
from rehome.domain.text import rate_in
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.control.approval import lapses
from rehome.execution.control.words.approval_words import reason_of
from rehome.fleet import plan_settings
from rehome.run import evidence, run_request
from rehome.run.asking.answer_fault import AnswerFault, Fault
from rehome.run.words.answer_words import not_counted_text

if TYPE_CHECKING:
    from rehome.domain.broker_rates import BrokerRates
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.domain.run.approval_terms import Person
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext
    from rehome.run.run_request import TaskPlan


def rate_of(
    context: RunContext,
    request: ReassignmentRequest,
    record: PlanRecord,
) -> tuple[int, str]:
    """The throttle that a person has asked for since the plan was made, or that the run asked for,
    or what the dry run has found for it by the ledger; and why.

    :raises NotDoneError: the run has made no dry run.
    """
    if not request.unthrottled:  # else what brokers can take in: for what is predicted alone
        if record.requested_rate_bytes_per_s is not None:
            return record.requested_rate_bytes_per_s, ""
        if request.throttle_bytes_per_s is not None:
            return request.throttle_bytes_per_s, ""
    tried = evidence.dry_run_of(context, record.plan_id)
    if tried is None:
        if not record.state.active or record.approval is None:
            raise evidence.not_tried_out(context, record.plan_id)
        return record.approval.terms.rate_bytes_per_s, ""
    return tried.rate_bytes_per_s, "" if request.unthrottled else f"auto: {tried.rate_cause}"


def rates_by_broker_of(
    request: ReassignmentRequest, record: PlanRecord, rate_bytes_per_s: int
) -> BrokerRates:
    """The throttles of brokers that have one of their own: as a person has asked for since the plan
    was made, or as the run asks for, within what the connection's policy allows of each broker.

    :param rate_bytes_per_s: the plan's.
    """
    if record.requested_rates_by_broker is None or request.unthrottled:
        return request.own_rates(rate_bytes_per_s)
    bounds = request.throttle_max_by_broker
    return record.requested_rates_by_broker.at_most(bounds, rate_bytes_per_s)


def _asked_by_broker(record: PlanRecord, terms: Terms) -> BrokerRates | None:
    return None if record.requested_rates_by_broker is None else terms.rates_by_broker


def terms_of(task: TaskPlan) -> Terms:
    """What the run would carry out now: to be approved, and to be compared with what was.

    :raises ClustersFileError: the clusters file cannot be used, and the plan has not begun.
    :raises NotDoneError: the run has not tried the plan out, which has not begun.
    :raises FileChangedError: what people read of the plan is not what was recorded.
    """
    context, record, request = task.context, task.record, task.request
    directory, begun = task.directory, record.state.active
    shown = None
    if record.state is not PlanState.RUNNING:
        tried = evidence.read_dry_run(context, record.plan_id, directory)
        shown = evidence.of_plan(context.ledger, record.plan_id, directory)
        shown |= {evidence.DRY_RUN_FILE: tried.row.digest}
    compared = plan_settings.ComparedSettings.of(
        directory, record.action, context.connection, begun=begun
    )
    rate = rate_of(context, request, record)[0]
    effects = Effects.of(task.plan, request, followed_up=not context.in_follow_up)
    own = rates_by_broker_of(request, record, rate)
    return Terms.of(record.plan_hash, rate, request, compared.counting, effects, shown, own)


def refuse_own_approval(context: RunContext, person: Person, *occasions: Askers) -> None:
    """See that the answer to a request for approval comes from a person who may give it: one who
    has asked neither for the plan, nor for the run, nor for other terms.

    :param person: who has answered, as Airflow has recorded it.
    :param occasions: when it was asked, and now.
    :raises PolicyError: the connection's policy asks for another person.
    """
    policy = run_request.policy_of(context)
    for askers in occasions:
        policy.require_approver(person.name or person.id, askers, *person.names)


def sent_back_with(context: RunContext, person: Person, text: str) -> tuple[int | None, Fault]:
    """The throttle that a plan is sent back with, bytes per second; and what to tell who is asked
    next. None = it cannot be had.

    Where nobody may approve what is their own, who may approve the plan may lower its throttle, but
    not raise it: the same person could approve that then.

    :param person: who has answered; ``text``: the throttle in the answer.
    """
    request, rate = run_request.plan_request(context), rate_in(text)
    if request.unthrottled:
        return None, Fault(AnswerFault.RUNS_UNTHROTTLED)
    if rate is None:
        return None, Fault(AnswerFault.NO_RATE, text or "nothing")
    policy, actor = run_request.policy_of(context), context.actor
    try:
        policy.require_control(Control.CHANGE_THROTTLE, rate)
    except PolicyError as error:
        return None, Fault(AnswerFault.RATE_REFUSED, text, str(error))
    record = context.ledger.plan(context.plan_id)
    raises = policy.asks_another and rate > rate_of(context, request, record)[0]
    if raises:
        try:
            refuse_own_approval(context, person, record.askers(actor))
        except PolicyError:
            pass  # another person has to approve it
        else:
            return None, Fault(AnswerFault.OWN_RATE, text)
    return rate, Fault(AnswerFault.TO_BE_TRIED, text)


def refuse_recorded_approval(policy: ConnectionPolicy, record: PlanRecord) -> None:
    """See that the approval that the ledger has of a plan is one that counts.

    :raises PolicyError: the connection's policy asks for a person, or for another one.
    """
    given = record.approval
    askers = (None, {}) if given is None else (given.asked_by, given.terms_asked_by)
    person = None if given is None else given.person
    names = frozenset[str]() if person is None else person.names
    policy.require_approver(record.approver, Askers(record.actor, *askers), *names)


def why_not(task: TaskPlan, terms: Terms) -> str:
    """Why an earlier approval does not hold for what would be run now, in words; "" = it does,
    and it is by a person where one is asked for.
    """
    record, request = task.record, task.request
    if record.approval is None:
        return "it was never approved"
    runs = record.state is PlanState.RUNNING
    open_lapses = lapses(
        record.approval,
        terms,
        None if runs else utc_now(),
        requested_rate_bytes_per_s=record.requested_rate_bytes_per_s,
        requested_rates_by_broker=_asked_by_broker(record, terms),
        begun=record.state.active,
        needs_person=request.approval,
    )
    was = record.approval
    reasons = [reason_of(lapse, was.terms, terms, was.expires_at) for lapse in open_lapses]
    accepted = runs or not request.approval or counts(task)
    if not accepted and not reasons:
        reasons = [not_counted_text(was.by_whom)]
    return "; ".join(reasons)


def refuse_unapproved(task: TaskPlan) -> None:
    """Let a plan that runs go on only as it was approved, whatever the states of tasks say that
    come before: a run that has taken it up may have been given other terms.

    :raises ApprovalLapsedError: it would run otherwise.
    """
    from rehome.execution.control.refused import refuse_lapsed

    record, request = task.record, task.request
    if record.state is not PlanState.RUNNING or record.approval is None:
        return  # by an earlier Rehome, which kept no terms
    terms, requested_rate = terms_of(task), record.requested_rate_bytes_per_s
    if (
        requested_rate is None and request.throttle_bytes_per_s is None
    ):  # what the last dry run has found
        rate = record.approval.terms.rate_bytes_per_s
        own = rates_by_broker_of(request, record, rate)
        terms = replace(terms, rate_bytes_per_s=rate, rates_by_broker=own)
    refuse_lapsed(
        *(record.plan_id, record.approval, terms, None),
        requested_rate_bytes_per_s=requested_rate,
        requested_rates_by_broker=_asked_by_broker(record, terms),
    )


def counts(task: TaskPlan) -> bool:
    """Whether the connection's policy accepts the approval that the ledger has of a plan."""
    try:
        refuse_recorded_approval(task.context.policy_for(task.record), task.record)
    except PolicyError:
        return False
    return True
