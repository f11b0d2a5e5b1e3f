"""What a poll, a step, a sweep or a plan job knows, as values of metrics. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from rehome.account.known import Fact, Known
from rehome.account.pace import PlanPace, copied_by_broker
from rehome.account.plan_bytes import bytes_at_poll
from rehome.account.times import ends_at_poll
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.move import Move
from rehome.domain.run.causes.error_kind import ErrorKind
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.flows import RateReason
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import SetRate
from rehome.execution.advance import Advance
from rehome.execution.governor.cluster_health import strain_of
from rehome.execution.poll import Poll
from rehome.metrics import catalog
from rehome.metrics.catalog import Label, Metric, MetricSubject

FOUND_BY_POLLS = tuple(
    kind for kind in HurtKind if kind not in (HurtKind.ALERT, HurtKind.NOT_POLLED)
)
DELAYS = timedelta(minutes=2)
"""So much later than a poll its values may reach who reads them: OpenTelemetry sends them once a
minute, and Prometheus asks when it pleases."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of a metric; of a counter, what it grows by."""

    metric: Metric
    value: float
    labels: Mapping[Label, str]


@dataclass(frozen=True, slots=True)
class ClusterGauges:
    """What is known of a cluster apart from a plan's polls. None = not read this time.

    :param unsent_since: since when the oldest alert waits, in seconds of Unix time; 0 = none does.
    :param findings: kind and severity → how many are open.
    """

    cluster_id: str
    snapshot_taken_at: datetime | None = None
    swept_at: datetime | None = None
    plans: Mapping[PlanState, int] | None = None
    orphaned: int | None = None
    owed: int | None = None
    foreign: int | None = None
    unsent_since: float | None = None
    findings: Mapping[tuple[str, str], int] | None = None


@dataclass(frozen=True, slots=True)
class PlanJob:
    """How a plan job went.

    :param gates: each gate that has run → whether it passed.
    """

    cluster_id: str
    took: timedelta
    gates: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Polled:
    """The plan that is polled.

    :param planned_bytes: to be copied, as it was planned.
    :param brokers: all that its moves name.
    :param fresh_for_s: how long its run may send no heartbeat (``lease.ttl_s``).
    """

    cluster_id: str
    plan_id: str
    policy: Policy
    fresh_for_s: float
    planned_bytes: int
    brokers: frozenset[BrokerId] = frozenset()


def poll_readings(plan: Polled, poll: Poll) -> Iterator[Reading]:
    """What one poll of the trigger has found."""
    yield from _gauges(plan, poll)
    yield Reading(catalog.BYTES_MOVED, poll.copied_bytes, {Label.CLUSTER: plan.cluster_id})
    if poll.observation.throttles_unread:
        count = len(poll.observation.throttles_unread)
        yield from error_readings(plan.cluster_id, ErrorKind.THROTTLE_UNREAD, count)


def _gauges(plan: Polled, poll: Poll) -> Iterator[Reading]:
    sample, view, observation = poll.progress.sample, poll.view, poll.observation
    at = {Label.CLUSTER: plan.cluster_id}
    until = sample.sampled_at + timedelta(seconds=plan.fresh_for_s) + DELAYS
    yield Reading(catalog.FRESH_UNTIL, until.timestamp(), at | {Label.PLAN: plan.plan_id})
    lags = [status.messages_behind or 0 for status in poll.progress.statuses]
    ends = ends_at_poll(sample, plan.policy.window_end, poll.hurts)
    copying = bytes_at_poll(plan.planned_bytes, None, sample).copying
    gauges: dict[Metric, float] = {
        catalog.RATE: sample.rate_bytes_per_s or 0.0,
        catalog.ENDS_AT: _unix(ends.value.likely if isinstance(ends, Known) else None),
        catalog.WINDOW_END: _unix(plan.policy.window_end),
        catalog.MOVED_AT: _unix(view.still_since),
        catalog.LAG_LARGEST: max(lags, default=0),
        catalog.LAG_SUM: sum(lags),
        catalog.BROKERS_SILENT: len(observation.missing),
        **_throttle(view),
    }
    suffering = strain_of(observation)
    if suffering is not None:
        gauges[catalog.OUTSIDE_ISR] = suffering.outside_isr
        gauges[catalog.MESSAGES_BEHIND] = suffering.messages_behind
    if isinstance(copying, Known):
        gauges[catalog.BYTES_TOTAL] = copying.value.total
        gauges[catalog.BYTES_LEFT] = copying.value.left
    for metric, value in gauges.items():
        yield Reading(metric, value, at)
    for state, count in _states(view).items():
        yield Reading(catalog.MOVES_BY_STATE, count, at | {Label.STATE: state})
    hurting = {each.kind for each in poll.hurts}
    for kind in FOUND_BY_POLLS:
        yield Reading(catalog.PLAN_HURTING, float(kind in hurting), at | {Label.KIND: kind})


def step_readings(plan: Polled, done: Advance) -> Iterator[Reading]:
    """What one step of a worker has found and changed. Counters grow by 0, too: so they begin."""
    cluster_id, at = plan.cluster_id, {Label.CLUSTER: plan.cluster_id}
    if done.last_poll is not None:
        yield from _gauges(plan, replace(done.last_poll, view=_after(done, done.last_poll.view)))
    yield Reading(catalog.BYTES_MOVED, done.copied_bytes, at)
    yield Reading(catalog.MOVES_ADMITTED, len(done.admitted), at)
    ended = Counter(done.settled.values())
    for state in MoveState:
        if state.ended:
            yield Reading(catalog.MOVES_ENDED, ended[state], at | {Label.STATE: state})
    yield from rate_readings(
        cluster_id, [action.reason for action in done.actions if isinstance(action, SetRate)]
    )
    for kind in ErrorKind:
        count = len(done.errors) if kind is ErrorKind.REFUSED else 0
        yield from error_readings(cluster_id, kind, count)


def broker_readings(
    plan: Polled, pace: Fact[PlanPace], flying: Collection[tuple[Move, BrokerId | None]]
) -> Iterator[Reading]:
    """What each broker of the plan copies, by what its page shows, too.

    :param pace: at the newest poll; while it is not known, rates are left out.
    :param flying: moves in flight, each with the leader that it copies from, where that is known.
    """
    into, out_of = copied_by_broker(flying)
    for broker in sorted(plan.brokers):
        at = {Label.CLUSTER: plan.cluster_id, Label.BROKER: str(broker)}
        yield Reading(catalog.BROKER_REASSIGNING, into[broker] + out_of[broker], at)
        if isinstance(pace, Known):
            yield Reading(catalog.BROKER_BYTES_IN, pace.value.into.get(broker, 0.0), at)
            yield Reading(catalog.BROKER_BYTES_OUT, pace.value.out_of.get(broker, 0.0), at)


def _after(done: Advance, view: LedgerView) -> LedgerView:
    """What a step has made of what its last poll found: the plan may have ended with it."""
    changed = dict.fromkeys(done.admitted, MoveState.ADMITTED) | done.settled
    plan_states = {
        partition: state for partition, state in changed.items() if partition in view.moves
    }
    return replace(view, moves={**view.moves, **plan_states})


def rate_readings(cluster_id: str, reasons: Collection[RateReason]) -> Iterator[Reading]:
    """Rates that were set on the brokers of a cluster, and why."""
    for reason, count in {**dict.fromkeys(RateReason, 0), **Counter(reasons)}.items():
        labels = {Label.CLUSTER: cluster_id, Label.REASON: reason}
        yield Reading(catalog.THROTTLE_CHANGES, count, labels)


def error_readings(cluster_id: str, kind: ErrorKind, count: int = 1) -> Iterator[Reading]:
    """Something has gone wrong so many times."""
    yield Reading(catalog.ERRORS, count, {Label.CLUSTER: cluster_id, Label.KIND: kind})


def end_readings(cluster_id: str, plan_id: str, brokers: Collection[BrokerId]) -> Iterator[Reading]:
    """No poll comes any more: the plan has ended or paused, and nothing of it is left to show.

    :param brokers: of the plan.
    """
    at = {Label.CLUSTER: cluster_id}
    for metric in catalog.METRICS:
        if metric.subject is not MetricSubject.PLAN:
            continue
        if metric is catalog.FRESH_UNTIL:
            yield Reading(metric, 0, at | {Label.PLAN: plan_id})
        elif metric is catalog.MOVES_BY_STATE:
            for state in MoveState:
                yield Reading(metric, 0, at | {Label.STATE: state})
        elif metric is catalog.PLAN_HURTING:
            for kind in FOUND_BY_POLLS:
                yield Reading(metric, 0, at | {Label.KIND: kind})
        elif Label.BROKER in metric.labels:
            for broker in sorted(brokers):
                yield Reading(metric, 0, at | {Label.BROKER: str(broker)})
        else:
            yield Reading(metric, 0, at)


def cluster_readings(facts: ClusterGauges) -> Iterator[Reading]:
    """What a sweep, or the end of a plan or a snapshot, knows of its cluster."""
    at = {Label.CLUSTER: facts.cluster_id}
    values: dict[Metric, float | None] = {
        catalog.SNAPSHOT_TAKEN_AT: _seconds_or_none(facts.snapshot_taken_at),
        catalog.SWEPT_AT: _seconds_or_none(facts.swept_at),
        catalog.PLANS_ORPHANED: facts.orphaned,
        catalog.THROTTLES_OWED: facts.owed,
        catalog.THROTTLES_FOREIGN: facts.foreign,
        catalog.ALERT_UNSENT_SINCE: facts.unsent_since,
    }
    for metric, value in values.items():
        if value is not None:
            yield Reading(metric, value, at)
    if facts.plans is not None:
        for state in PlanState:
            yield Reading(
                catalog.PLANS_BY_STATE, facts.plans.get(state, 0), at | {Label.STATE: state}
            )
    for (kind, severity), count in (facts.findings or {}).items():
        labels = at | {Label.KIND: kind, Label.SEVERITY: severity}
        yield Reading(catalog.OPEN_FINDINGS, count, labels)


def plan_job_readings(job: PlanJob) -> Iterator[Reading]:
    """How long a plan job took, and which gates let it pass."""
    at = {Label.CLUSTER: job.cluster_id}
    yield Reading(catalog.PLAN_JOB_S, job.took.total_seconds(), at)
    for gate, passed in job.gates.items():
        yield Reading(catalog.GATES_FAILED, int(not passed), at | {Label.GATE: gate})


def _throttle(view: LedgerView) -> dict[Metric, float]:
    limit = view.rates[-1].limit_bytes_per_s if view.rates else view.rate_bytes_per_s
    return {
        catalog.THROTTLE_ASKED: limit or 0,
        catalog.THROTTLE_TARGET: view.target_bytes_per_s or 0,
        catalog.THROTTLE_SET: view.rate_bytes_per_s or 0,
        catalog.THROTTLE_DELIVERED: view.flows[-1].busiest_bytes_per_s if view.flows else 0.0,
    }


def _states(view: LedgerView) -> dict[MoveState, int]:
    counted = Counter(view.moves.values())
    for state, sums in view.settled.items():
        counted[state] += sums.moves
    return {state: counted[state] for state in MoveState}


def _unix(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()


def _seconds_or_none(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
