"""What is approved: the throttle, the terms, and by whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.fleet import plan_settings
from rehome.run import plan_ids, recorded_plans, run_params, run_request

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.domain.request.request import ReassignmentRequest
    from include.domain.run.approval_terms import Terms
    from include.domain.run.askers import Askers
    from include.execution.access.connection_policy import ConnectionPolicy
    from include.ledger.base.records import PlanRecord


def rate_of(
    context: Context | Mapping[str, Any], request: ReassignmentRequest, record: PlanRecord
) -> tuple[int, str]:
    """The throttle that a person has asked for since the plan was made, or that the run asked for,
    or what the dry run has found for it; and why.
    """
    if request.unthrottled:  # what brokers can take in: for what is predicted alone
        directory = recorded_plans.plan_directory(context)
        return directory.read_json("dry_run.json")["rate_bytes_per_s"], ""
    if record.requested_rate_bytes_per_s is not None:
        return record.requested_rate_bytes_per_s, ""
    if request.throttle_bytes_per_s is not None:
        return request.throttle_bytes_per_s, ""
    tried = recorded_plans.plan_directory(context).read_json("dry_run.json")
    return tried["rate_bytes_per_s"], f"auto: {tried['rate_cause']}"


def terms_of(context: Context | Mapping[str, Any], request: ReassignmentRequest) -> Terms:
    """What the run would carry out now: to be approved, and to be compared with what was.

    :raises ClustersFileError: the clusters file cannot be used, and the plan has not begun.
    """
    from include.domain.run.approval_terms import Terms

    with installation.open_ledger() as ledger:
        record = ledger.plan(plan_ids.plan_id_of(context))
    directory, begun = recorded_plans.plan_directory(context), record.state.active
    compared = plan_settings.ComparedSettings.of(directory, record.action, begun=begun)
    rate = rate_of(context, request, record)[0]
    return Terms.of(record.plan_hash, rate, request, compared.counting)


def refuse_own_approval(
    context: Context | Mapping[str, Any], event: Mapping[str, Any], asked: Askers
) -> None:
    """See that the answer to a request for approval comes from a person who may give it: one who
    has asked neither for the plan, nor for the run, nor for other terms.

    :param event: what Airflow knows of the answer.
    :raises PolicyError: the connection's policy asks for another person.
    """
    user = event.get("responded_by_user") or {}
    names = [str(name) for name in (user.get("name"), user.get("id")) if name]
    run_request.policy_of(context).require_approver(next(iter(names), None), asked, *names)


def sent_back_with(
    context: Context | Mapping[str, Any], event: Mapping[str, Any], text: str
) -> tuple[int | None, str]:
    """The throttle that a plan is sent back with, bytes per second; and what to tell who is asked
    next. None = it cannot be had.

    Where nobody may approve what is their own, who may approve the plan may lower its throttle, but
    not raise it: the same person could approve that then.

    :param event: what Airflow knows of the answer; ``text``: the throttle in it.
    """
    from include.domain.run.states import Control
    from include.domain.text import rate_in
    from include.execution.access.connection_policy import PolicyError

    request, rate = run_request.plan_request(context), rate_in(text)
    if request.unthrottled:
        return None, "it is to run without a throttle: reject it, and trigger another."
    if rate is None:
        return None, f"`{text or 'nothing'}` is no throttle: write 50 MB/s, or 50000000."
    policy, actor = run_request.policy_of(context), run_params.actor_of(context)
    try:
        policy.require_control(Control.CHANGE_THROTTLE, rate)
    except PolicyError as error:
        return None, f"{text} cannot be had. {error}"
    with installation.open_ledger() as ledger:
        record = ledger.plan(plan_ids.plan_id_of(context))
    if policy.asks_another and rate > rate_of(context, request, record)[0]:
        try:
            refuse_own_approval(context, event, record.askers(actor))
        except PolicyError:
            pass  # another person has to approve it
        else:
            return None, (
                f"{text} is more than was asked for, and who asks for more may not approve it. "
                "Have who asked for the plan send it back with that, or reject it, and have "
                "another plan made with it."
            )
    return rate, f"to be tried out with {text}."


def refuse_recorded_approval(policy: ConnectionPolicy, record: PlanRecord) -> None:
    """See that the approval that the ledger has of a plan is one that counts.

    :raises PolicyError: the connection's policy asks for a person, or for another one.
    """
    from include.domain.run.askers import Askers

    given = record.approval
    asked = (None, {}) if given is None else (given.asked_by, given.terms_asked_by)
    policy.require_approver(record.approver, Askers(record.actor, *asked))


def counts(context: Context | Mapping[str, Any], record: PlanRecord) -> bool:
    """Whether the connection's policy accepts the approval that the ledger has of a plan."""
    from include.execution.access.connection_policy import PolicyError

    try:
        refuse_recorded_approval(run_request.policy_of(context), record)
    except PolicyError:
        return False
    return True
