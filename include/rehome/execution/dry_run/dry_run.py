"""Dry run: checks everything that could refuse or spoil a plan, before anything changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.rights import Role
from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.broker_rates import BrokerRates
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.limits import BrokerCaps
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.findings import Finding, FindingOfKind, Severity
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.timing import RunTiming
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.dry_run.active_plan import (
    ActivePlan,
    active_findings,
    read_cluster_beside,
)
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.controller_rules import predict
from rehome.execution.dry_run.disk_headroom import disk_findings
from rehome.execution.dry_run.inflow import (
    growth_bytes_per_s,
    inflow_findings,
    size_findings,
    window_findings,
)
from rehome.execution.dry_run.rates.auto_rate import (
    RateCause,
    RateWhy,
    auto_rate,
    traffic_bytes_per_s,
)
from rehome.execution.dry_run.rates.rates_found import RatesFound, find_rates
from rehome.execution.dry_run.replica_checks import (
    broker_findings,
    file_findings,
    isr_findings,
    limit_findings,
    rack_findings,
    redundancy_findings,
    step_findings,
)
from rehome.execution.dry_run.result import DryRunResult, describe
from rehome.execution.dry_run.throttle_checks import (
    cordon_findings,
    throttle_findings,
    without_throttle,
)
from rehome.execution.dry_run.typed_finding import (
    FOREIGN_CHECK,
    INFLOW_CHECK,
    RACKS_CHECK,
    REDUNDANCY_CHECK,
    VERSIONS_CHECK,
    FoundKind,
    TypedFinding,
)
from rehome.execution.dry_run.version_checks import version_findings
from rehome.execution.dry_run.words.plan_words import RIGHT_OF_OTHERS
from rehome.execution.dry_run.words.rate_words import rate_cause_text
from rehome.execution.dry_run.words.worded import put_in_words
from rehome.execution.estimate.airflow_times import airflow_times
from rehome.execution.estimate.estimate import Beforehand, before_start
from rehome.execution.observation.drift import drift, not_known
from rehome.execution.observation.foreign_reassignments import hindrance
from rehome.execution.policy_from_request import policy_for, rate_for
from rehome.execution.throttle.foreign import SetByPlans
from rehome.settings import Settings

__all__ = ["DryRunResult", "Finding", "Severity", "describe", "dry_run"]

_OF_RIGHTS = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)
_SHOWN = 50
"""Findings of one check and severity that are spelled out."""


def dry_run(
    plan: Plan,
    request: ReassignmentRequest,
    snapshot: Snapshot,
    cluster: OwnCluster,
    settings: Settings,
    *,
    active: ActivePlan | None = None,
    in_flight: Collection[TopicPartition] = (),
    rate_bytes_per_s: int | None = None,
    rates_asked: BrokerRates | None = None,
    rates_are_targets: bool = False,
    timings: Sequence[RunTiming] = (),
    caps_now: BrokerCaps | None = None,
    ours: SetByPlans = MappingProxyType({}),
) -> DryRunResult:
    """Check a plan against the cluster as it is now, and change nothing.

    :param active: the plan that holds the cluster.
    :param in_flight: partitions that the plan, which is continued, has in flight already.
    :param rate_bytes_per_s: the throttle to be set; None = what the request says, or what the
        brokers can spare.
    :param rates_asked: of brokers that are to have one of their own; None = as the request says.
    :param rates_are_targets: those of the request are targets of the cluster: it names no brokers.
    :param timings: how soon Airflow acted in runs that are over.
    :param caps_now: of the cluster. Of these and the plan's, the stricter count for disks.
    :param ours: throttles that plans have set and not taken back.
    :raises ClusterError: the cluster could not be read at all.
    """
    role = Role.UNTHROTTLED if request.unthrottled else Role.REASSIGNER
    now, others_moves = read_cluster_beside(plan, cluster, role, active)
    rate, why = _rate(plan, request, snapshot, now, settings)
    if rate_bytes_per_s is not None and not request.unthrottled:
        rate, why = rate_bytes_per_s, None
    policy, airflow = policy_for(request, settings), airflow_times(timings, settings)
    if rates_asked is not None:
        request, rates_are_targets = replace(request, throttle_by_broker=rates_asked), False
    own = request.own_rates(rate)
    run_brokers = () if rates_are_targets else request.throttle_by_broker.brokers
    pace = policy.pace(rate, own.by_key())
    growth = growth_bytes_per_s(plan, snapshot, now)
    unthrottled = request.unthrottled or rate <= 0
    rates = RatesFound() if unthrottled else find_rates(plan, cluster, now, rate, own)
    terms = Beforehand(policy, rate, airflow, rates.lower_rates, growth, own.by_key())
    predicted = before_start(plan, now.observation(plan), terms)
    checks: dict[str, Callable[[], Iterator[TypedFinding]]] = {
        "active plan": lambda: active_findings(
            plan, active, others_moves, looks_only=request.dry_run
        ),
        "rights": lambda: _rights(now),
        "brokers": lambda: broker_findings(plan, now),
        REDUNDANCY_CHECK: lambda: redundancy_findings(
            plan, request, now, refuse=settings.refuse_fewer_domains
        ),
        "in-sync replicas": lambda: isr_findings(plan, now),
        "drift": lambda: _drift(plan, now),
        FOREIGN_CHECK: lambda: foreign_findings(plan, request, now, {*in_flight, *others_moves}),
        "verdict": lambda: _verdicts(plan, now),
        "throttle": lambda: (
            without_throttle(policy)
            if request.unthrottled
            else throttle_findings(
                *(plan, cluster, now, rate, rates),
                own=own,
                run_brokers=run_brokers,
                ours=ours,
                marked=not request.export,
            )
        ),
        VERSIONS_CHECK: lambda: version_findings(plan, cluster, now, in_flight),
        "steps": lambda: step_findings(plan, request),
        "cordon": lambda: cordon_findings(request, now.cluster.brokers, cluster),
        INFLOW_CHECK: lambda: inflow_findings(plan, growth, now, pace),
        "window": lambda: window_findings(plan, request, now, pace, predicted),
        "disk": lambda: disk_findings(plan, now, _kept_free(policy, caps_now)),
        RACKS_CHECK: lambda: rack_findings(request, now.cluster.brokers.values()),
        "limits": lambda: limit_findings(request, now.cluster.brokers),
        "reassignment": lambda: file_findings(request),
    }
    reworded = _for_others if request.export else (lambda finding: finding)
    findings = [
        item
        for check in checks.values()
        for item in _shorten([reworded(put_in_words(each)) for each in check()])
    ]
    return DryRunResult(
        plan.plan_id,
        plan.plan_hash,
        tuple(checks),
        tuple(findings),
        partitions=len(plan.moves),
        bytes_to_move=sum(now.size_bytes(move) * len(move.adding) for move in plan.moves),
        log_dir_bytes=sum(now.replica_bytes(m, b) for m in plan.moves for b in m.relocating),
        rate_bytes_per_s=rate,
        rate_cause="" if why is None else rate_cause_text(why),
        own_rates=own,
        predicted=None if _outgrown(findings) else predicted,
        runs_measured=airflow.runs,
        unthrottled=request.unthrottled,
    )


def _outgrown(findings: Sequence[Finding]) -> bool:
    """Whether some copies would never end, for producers write more than the throttle lets by."""
    return any(finding.what == FoundKind.INFLOW_OUTPACES for finding in findings)


def _kept_free(policy: Policy, caps_now: BrokerCaps | None) -> Callable[[BrokerId], float]:
    """The part of a broker's log dirs that stays free."""
    if caps_now is None:
        return policy.kept_free
    return lambda broker: caps_now.kept_free(broker, policy.kept_free(broker))


def _rate(
    plan: Plan,
    request: ReassignmentRequest,
    snapshot: Snapshot,
    now: ClusterState,
    settings: Settings,
) -> tuple[int, RateCause | None]:
    """The throttle of a request, and why it is this one where none was asked for."""
    if request.unthrottled:
        return rate_for(request, settings), None
    if request.throttle_bytes_per_s is not None:
        return request.throttle_bytes_per_s, None
    traffic = traffic_bytes_per_s(snapshot, now)
    if traffic is None:
        return rate_for(request, settings), RateCause(RateWhy.TRAFFIC_NOT_KNOWN)
    left_s = None
    if request.window_end is not None:
        left_s = (request.window_end - now.taken_at).total_seconds() - settings.reaction_s
    choice = auto_rate(
        plan,
        now,
        traffic,
        settings.broker_capacity_bytes_per_s,
        window_left_s=left_s,
        at_least=request.throttle_min,
        at_most=request.throttle_max,
    )
    return choice.rate_bytes_per_s, choice.cause


def _shorten(findings: list[Finding]) -> Iterator[Finding]:
    """The first of each kind, worst first, and how many there are beyond them."""
    by_kind: dict[FindingOfKind, list[Finding]] = {}
    for item in findings:
        by_kind.setdefault(item.kind, []).append(item)
    for severity in Severity:
        kinds = [same for kind, same in by_kind.items() if kind.severity is severity]
        for same in kinds[:_SHOWN]:
            yield from same[: _SHOWN - 1]
            last = same[_SHOWN - 1 : _SHOWN]
            yield from (replace(item, more=len(same) - _SHOWN) for item in last)
        rest = sum(map(len, kinds[_SHOWN:]))
        if rest:
            yield Finding(severity, kinds[0][0].check, "and", f"{rest} more")


def _rights(now: ClusterState) -> Iterator[TypedFinding]:
    for right in now.missing_rights:
        code = _OF_RIGHTS[0 if right.startswith("Topic") else 1]
        yield TypedFinding(FoundKind.RIGHT_LACKING, right, code.error())


def _for_others(finding: Finding) -> Finding:
    """A finding as it applies to files that others carry out: a right that this principal lacks is
    one that they need.
    """
    if finding.severity is not Severity.ERROR or finding.code not in _OF_RIGHTS:
        return finding
    return replace(finding, severity=Severity.WARNING, remedy=RIGHT_OF_OTHERS)


def _drift(plan: Plan, now: ClusterState) -> Iterator[TypedFinding]:
    for partition, what in drift(plan, now.topics).items():
        yield TypedFinding(FoundKind.CHANGED, str(partition), drift=what)
    for topic in not_known(plan, now.topics):
        yield TypedFinding(FoundKind.NOT_COMPARED, topic)
    yield from size_findings(plan, now)


def _verdicts(plan: Plan, now: ClusterState) -> Iterator[TypedFinding]:
    moves = (move for move in plan.moves if move.partition.topic in now.topics)
    targets = {move.partition: move.target for move in moves}
    facts = now.controller_facts(allow=plan.allow_replication_factor_change)
    for partition, error in predict(targets, facts).items():
        if error is not None:
            yield TypedFinding(FoundKind.CONTROLLER_REFUSES, str(partition), error)


def foreign_findings(
    plan: Plan, request: ReassignmentRequest, now: ClusterState, ours: Collection[TopicPartition]
) -> Iterator[TypedFinding]:
    """Reassignments in flight that no plan of this ledger has started.

    :param ours: partitions that the plan, which is continued, has in flight already, or another
        plan.
    """
    for partition, entry in sorted(now.ongoing.items()):
        if partition in ours:
            continue
        kind = FoundKind.FOREIGN_BESIDE if request.additional else FoundKind.FOREIGN
        yield TypedFinding(
            FoundKind.FOREIGN_ON_MOVE if partition in plan.by_partition else kind,
            str(partition),
            brokers=tuple(entry.target),
            partition=partition,
            hindrance=hindrance(entry, now.cluster.brokers, now.state(partition)),
        )
