"""What every task needs: settings, the ledger, the warehouse, the plan of its run, plain errors."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from include.cluster.interface.errors import MissingRightError, Unreachable
from include.clusters.clusters_file import ClustersFileError
from include.errors import STEP_UNCHANGED, InvalidRequestError, PlanConflictError, RehomeError
from include.execution.access.connection_policy import PolicyError
from include.execution.access.own_cluster import WrongClusterError
from rehome import installation
from rehome.executors import UnsharedLedgerError
from rehome.fleet import clusters, planned_with, started
from rehome.params import FORM_DEFAULTS
from rehome.timetables.maintenance_window import WINDOWS

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.cluster.interface.port import ClusterPort
    from include.domain.plan.plan import Plan
    from include.domain.request.presets import Filled
    from include.domain.request.request import ReassignmentRequest
    from include.domain.run.approval_terms import Terms
    from include.execution.access.connection_policy import ConnectionPolicy
    from include.execution.access.lease import LeasedCluster
    from include.execution.control.controller import Controller
    from include.ledger.base.records import PlanRecord
    from include.ledger.store import Ledger
    from include.warehouse import PlanDirectory

FOLLOW_UP = "follow_up"
"""The group of tasks that moves what has appeared on drained brokers; its plan's id ends so."""

# What another attempt cannot mend.
_FINAL = (
    InvalidRequestError,
    PlanConflictError,
    PolicyError,
    WrongClusterError,
    MissingRightError,
    UnsharedLedgerError,
)
# Causes of a ClusterUnreachableError that stay until the connection is changed.
_MISCONFIGURED = frozenset(
    {
        Unreachable.WRONG_PASSWORD,
        Unreachable.WRONG_MECHANISM,
        Unreachable.WRONG_PROTOCOL,
        Unreachable.WRONG_CA,
        Unreachable.WRONG_HOST,
    }
)

log = logging.getLogger(__name__)


def plan_id_of(context: Context | Mapping[str, Any]) -> str:
    """The id of the task's plan, made by its run or continued: the same in every retry.

    Tasks of the group ``follow_up`` have a plan of their own, named after the run's.
    """
    first = first_plan_id(context)
    return follow_up_id(first) if in_follow_up(context) else first


def first_plan_id(context: Context | Mapping[str, Any]) -> str:
    """The id of the plan that the run began with, made by it or continued."""
    return _continued(context) or _new_plan_id(context)


def follow_up_id(plan_id: str) -> str:
    """The id of the plan that follows a plan up within its run."""
    return f"{plan_id}-{FOLLOW_UP}"


def in_follow_up(context: Context | Mapping[str, Any]) -> bool:
    """Whether the task works on what has appeared since the run's plan was made."""
    return str(getattr(context.get("task"), "task_id", "")).startswith(f"{FOLLOW_UP}.")


def _continued(context: Context | Mapping[str, Any]) -> str | None:
    named = _named(context)
    if named is not None or window_end_of(context) is None:
        return named
    run = context["dag_run"]
    with installation.open_ledger() as ledger:
        return ledger.taken_up_by(run.dag_id, run.run_id)


def named_plan_id(context: Context | Mapping[str, Any]) -> str | None:
    """The id of the plan that the task is asked to go on with, or to act on.

    :raises InvalidRequestError: no plan can have this id.
    """
    return None if in_follow_up(context) else _named(context)


def _named(context: Context | Mapping[str, Any]) -> str | None:
    from include.domain.request.param_types import checked_plan_id
    from include.domain.request.request import Action

    params = _own_params(context)
    named = str(params.get("plan_id") or "").strip()
    if not named or params.get("action") == Action.ROLLBACK.value:
        return None
    return checked_plan_id(named)


def params_of(context: Context | Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of the run, with what its preset and its cluster's targets fill in."""
    return filled_params(context).params


def filled_params(context: Context | Mapping[str, Any]) -> Filled:
    """The same, with what the preset and the cluster's targets have set.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    run = context["dag_run"]
    return clusters.asked(context["params"], run.run_after, started.chosen_in(run))


def _own_params(context: Context | Mapping[str, Any]) -> Mapping[str, Any]:
    """Those that say which plan is the run's, with what its preset fills in. No cluster has a
    target for them: what a run has begun is found, and ended, whatever the clusters file says.
    """
    from include.domain.request.presets import filled

    run_after = context["dag_run"].run_after
    return filled(context["params"], FORM_DEFAULTS, lambda: run_after).params


def window_end_of(context: Context | Mapping[str, Any]) -> datetime | None:
    """When the maintenance window of the run closes, aware UTC; None = it has no window."""
    timetable = getattr(context.get("dag"), "timetable", None)
    if not isinstance(timetable, WINDOWS):
        return None
    run = context["dag_run"]
    window = timetable.infer_manual_data_interval(run_after=run.run_after)
    end: datetime = run.data_interval_end or window.end
    return end.astimezone(UTC)


def _new_plan_id(context: Context | Mapping[str, Any]) -> str:
    run = context["dag_run"]
    action = str(_own_params(context).get("action") or run.dag_id)
    return f"{run.run_after:%Y%m%dT%H%M%SZ}-{action}-{run_digest(run.dag_id, run.run_id)}"


def run_digest(dag_id: str, run_id: str) -> str:
    """What the id of a run's plan ends with."""
    return hashlib.sha256(f"{dag_id}/{run_id}".encode()).hexdigest()[:10]


def plan_directory(context: Context | Mapping[str, Any]) -> PlanDirectory:
    """The files of the run's plan."""
    return installation.warehouse().plan(plan_id_of(context))


def driver_of(context: Context | Mapping[str, Any], record: PlanRecord | None = None) -> str:
    """The run as the owner of a lease.

    :param record: of the plan to act on; a plan of an earlier Rehome knows no DAG.
    """
    from include.ledger.base.records import driver_name

    run = context["dag_run"]
    dag_id = None if record is not None and record.dag_id is None else run.dag_id
    return driver_name(dag_id, run.run_id)


def drives(context: Context | Mapping[str, Any], record: PlanRecord) -> bool:
    """Whether the run is the one that drives the plan."""
    return driver_of(context, record) == record.driver


@contextmanager
def driving(
    context: Context | Mapping[str, Any],
    ledger: Ledger,
    cluster: ClusterPort,
    record: PlanRecord,
    **options: Any,
) -> Iterator[LeasedCluster]:
    """Act on a plan's cluster as the run that drives the plan: see ``lease.hold``.

    :param options: ``wait_s`` and ``release``, as there.
    :raises PlanConflictError: another run drives the plan by now.
    :raises WrongClusterError: the connection leads to another cluster than the plan's.
    """
    from include.execution.access.lease import hold, ttl_s
    from include.execution.access.own_cluster import OwnCluster

    own = OwnCluster.of_plan(cluster, record)
    owner, lasting_s = driver_of(context, record), ttl_s(installation.settings())
    options["plan_id"] = record.plan_id
    with hold(ledger, own, owner, lasting_s, **options) as held:
        yield held


def controller(
    context: Context | Mapping[str, Any],
    ledger: Ledger,
    cluster: ClusterPort,
    policy: ConnectionPolicy,
) -> Controller:
    """Passes requests to plans on, in the name of the user who triggered the run, within the
    policy.
    """
    from include.execution.access.lease import ttl_s
    from include.execution.control.controller import Controller

    lease_s = ttl_s(installation.settings())
    return Controller(ledger, cluster, actor_of(context), lease_s, policy)


def recorded_plan(ledger: Ledger, plan_id: str) -> PlanRecord | None:
    """What the ledger knows of a plan; None where the run ended before there was one."""
    try:
        return ledger.plan(plan_id)
    except PlanConflictError:
        return None


def recorded_moves(ledger: Ledger, record: PlanRecord) -> Plan:
    """The plan that was recorded, to act on: what was approved is what runs.

    :raises PlanChangedError: its files hold another one by now.
    :raises PlanConflictError: they were made to be recorded in another ledger.
    :raises RehomeError: they are not there.
    """
    from include.domain.plan.plan_hash import refuse_changed
    from include.warehouse import PlanDirectory

    plan = PlanDirectory(record.plan_dir).load()
    refuse_changed(plan, record.plan_id, record.plan_hash)
    made_for = plan.summary.ledger_id
    if made_for not in ("", ledger.ledger_id):  # "": an earlier version of Rehome made it
        raise PlanConflictError(
            f"The files of plan {plan.plan_id} at {record.plan_dir} were made for the ledger "
            f"{made_for}, but this is the ledger {ledger.ledger_id}",
            state_left=STEP_UNCHANGED,
            next_step="See that the connection rehome_ledger, or the setting ledger_url, leads to "
            "the ledger that the run began with.",
        )
    return plan


def load_plan(context: Context | Mapping[str, Any]) -> tuple[Plan, ReassignmentRequest]:
    """The run's plan with the request it was made for, see :func:`plan_request`.

    :raises PlanChangedError: its files hold another one than was recorded.
    """
    return directory_plan(context)[0], plan_request(context)


def plan_request(context: Context | Mapping[str, Any]) -> ReassignmentRequest:
    """What the run's plan was asked for, within the bounds of this run.

    Of a plan that was made by another run, the ledger knows what it is for: the parameters of the
    run that carries it out say how, and are recorded with it when that takes it up.
    """
    with installation.open_ledger() as ledger:
        record = ledger.plan(plan_id_of(context))
    if not drives(context, record):
        return request_of(context)
    own = recorded_request(record)
    try:
        if not in_follow_up(context) and record.plan_id != _new_plan_id(context):
            own = replace(own, approval=own.approval or request_of(context).approval)
        return policy_of(context).bounded(own, context["dag_run"].run_after)
    except ClustersFileError:
        if not record.state.active:
            raise
        return own  # what runs goes on, within the bounds that it began with


def directory_plan(context: Context | Mapping[str, Any]) -> tuple[Plan, PlanDirectory]:
    """The run's plan and its files.

    :raises PlanChangedError: they hold another one than was recorded.
    """
    with installation.open_ledger() as ledger:
        record = ledger.plan(plan_id_of(context))
        return recorded_moves(ledger, record), plan_directory(context)


def refuse_changed_files(plan: Plan, directory: PlanDirectory) -> None:
    """See that Kafka's files, which people read and may use, say what is about to run.

    :raises PlanChangedError: they were changed since the gate checked them.
    """
    from include.domain.plan.kafka_json import KafkaFiles, refuse_other_files

    expected = KafkaFiles.of(plan.moves).digests()
    refuse_other_files(plan.plan_id, directory.file_digests(), expected)


def rate_of(
    context: Context | Mapping[str, Any], request: ReassignmentRequest, record: PlanRecord
) -> tuple[int, str]:
    """The throttle that a person has asked for since the plan was made, or that the run asked for,
    or what the dry run has found for it; and why.
    """
    if request.unthrottled:  # what brokers can take in: for what is predicted alone
        return plan_directory(context).read_json("dry_run.json")["rate_bytes_per_s"], ""
    if record.requested_rate_bytes_per_s is not None:
        return record.requested_rate_bytes_per_s, ""
    if request.throttle_bytes_per_s is not None:
        return request.throttle_bytes_per_s, ""
    tried = plan_directory(context).read_json("dry_run.json")
    return tried["rate_bytes_per_s"], f"auto: {tried['rate_cause']}"


def terms_of(context: Context | Mapping[str, Any], request: ReassignmentRequest) -> Terms:
    """What the run would carry out now: to be approved, and to be compared with what was.

    :raises ClustersFileError: the clusters file cannot be used, and the plan has not begun.
    """
    from include.domain.run.approval_terms import Terms

    with installation.open_ledger() as ledger:
        record = ledger.plan(plan_id_of(context))
    directory, begun = plan_directory(context), record.state.active
    compared = planned_with.Compared.of(directory, record.action, begun=begun)
    rate = rate_of(context, request, record)[0]
    return Terms.of(record.plan_hash, rate, request, compared.counting)


def request_of(context: Context | Mapping[str, Any]) -> ReassignmentRequest:
    """The run's parameters, validated as a whole, within the policy of the run's connection.

    ``window_end`` may lie in the past by now. In a maintenance window it is the window's end; and
    never later than the end of the window in which the policy allows the run. A follow-up is asked
    for what the plan was that it follows up, with what is left of the budget, and with the caps and
    broker sets that the cluster has by then.

    :raises InvalidRequestError: lists every problem.
    """
    from include.domain.request.limits import with_limits
    from include.domain.request.parse_request import parse_request

    begun = context["dag_run"].run_after
    if in_follow_up(context):
        return policy_of(context).bounded(_follow_up_request(first_plan_id(context)), begun)
    params, end = dict(params_of(context)), window_end_of(context)
    if end is not None:
        params["window_end"] = end
    settings = installation.settings()
    request = with_limits(parse_request(params, now=begun), settings.caps, settings.broker_sets)
    return policy_of(context).bounded(request, begun)


def policy_of(context: Context | Mapping[str, Any]) -> ConnectionPolicy:
    """What may be done through the task's connection, or the one that the run's parameters name."""
    from rehome.hooks.cluster import KafkaClusterHook

    return KafkaClusterHook(clusters.connection_of(context)).policy


def refuse_own_approval(
    context: Context | Mapping[str, Any], event: Mapping[str, Any], requester: str
) -> None:
    """See that the answer to a request for approval comes from a person who may give it.

    :param event: what Airflow knows of the answer.
    :raises PolicyError: the connection's policy asks for another person.
    """
    user = event.get("responded_by_user") or {}
    names = [str(name) for name in (user.get("name"), user.get("id")) if name]
    policy_of(context).require_approver(next(iter(names), None), requester, *names)


def _follow_up_request(plan_id: str) -> ReassignmentRequest:
    from include.execution.completion.drained import FOLLOWED_UP
    from include.execution.completion.follow_up import follow_up_request

    with installation.open_ledger() as ledger:
        record = ledger.plan(plan_id)
        if FOLLOWED_UP not in {event.kind for event in ledger.events(plan_id)}:
            raise PlanConflictError(
                f"Plan {plan_id} is not followed up: its task drained has found nothing to move",
                state_left=STEP_UNCHANGED,
                next_step=f"Leave the tasks of the group {FOLLOW_UP} as they are.",
            )
        plan = recorded_moves(ledger, record)
    request = follow_up_request(recorded_request(record), plan)
    return planned_with.renewed(request, installation.warehouse().plan(plan_id))


def recorded_request(record: PlanRecord) -> ReassignmentRequest:
    """What a plan was asked for; its window may be over by now."""
    from include.domain.request.parse_request import parse_request

    return parse_request(record.request, now=datetime.min.replace(tzinfo=UTC))


def actor_of(context: Context | Mapping[str, Any]) -> str:
    """Who triggered the run, as far as Airflow knows."""
    run = context["dag_run"]
    return str(getattr(run, "triggering_user_name", None) or run.run_type)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn Rehome's errors into Airflow's: one sentence in the log, before any traceback.

    What another attempt cannot mend fails the task at once.
    """
    try:
        yield
    except RehomeError as error:
        log.error("%s", error)
        final = isinstance(error, _FINAL) or getattr(error, "cause", None) in _MISCONFIGURED
        raise (AirflowFailException if final else AirflowException)(str(error)) from None
