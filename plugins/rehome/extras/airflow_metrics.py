"""Hands Rehome's metrics to Airflow's own: StatsD, Datadog or OpenTelemetry, as ``[metrics]`` says.

No poll or step fails because metrics cannot be sent, or waits for them: StatsD's are single
datagrams, and OpenTelemetry sends from a thread of its own.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ParamSpec

from airflow.providers.common.compat.sdk import conf

from rehome import installation
from rehome.airflow_versions import stats
from rehome.domain.clock import utc_now
from rehome.errors import RehomeError
from rehome.metrics.catalog import MetricKind, dotted_name, safe
from rehome.run.ports import PlanMetrics, RunMetrics

if TYPE_CHECKING:
    from rehome.account.evidence import PaceFollower
    from rehome.domain.kafka import BrokerId
    from rehome.domain.plan.plan import Plan
    from rehome.domain.run.causes.error_kind import ErrorKind
    from rehome.domain.run.flows import RateReason
    from rehome.domain.run.run_policy import Policy
    from rehome.execution.advance import Advance
    from rehome.execution.poll import Poll
    from rehome.ledger.store import Ledger
    from rehome.metrics.readings import ClusterGauges, Reading
    from rehome.settings import Settings

log = logging.getLogger(__name__)
P = ParamSpec("P")


class Way(enum.Enum):
    """How labels are sent."""

    OFF = "off"  # no backend is set
    TAGS = "tags"
    NAMES = "names"  # plain StatsD has no tags: they follow the name, between dots


def way() -> Way:
    """How the backend that Airflow is set to takes labels."""
    if conf.getboolean("metrics", "statsd_datadog_enabled"):
        tags = conf.getboolean("metrics", "statsd_datadog_metrics_tags", fallback=True)
        return Way.TAGS if tags else Way.NAMES
    if conf.getboolean("metrics", "statsd_on"):
        tags = conf.getboolean("metrics", "statsd_influxdb_enabled", fallback=False)
        return Way.TAGS if tags else Way.NAMES
    return Way.TAGS if conf.getboolean("metrics", "otel_on") else Way.OFF


def emit(read: Callable[P, Iterable[Reading]], *args: P.args, **kwargs: P.kwargs) -> None:
    """Send what a function of ``rehome.metrics.readings`` returns.

    It is not called where no backend is set. A failure is logged, and fails neither poll nor step.
    """
    try:
        chosen = way()
        if chosen is Way.OFF:
            return
        for reading in read(*args, **kwargs):
            _send(reading, chosen)
    except Exception:
        log.warning("Metrics could not be sent. The run goes on without them.", exc_info=True)


class AirflowMetrics(RunMetrics):
    """Sends what the core makes known."""

    def of_plan(self, plan: Plan, policy: Policy, settings: Settings) -> PlanMetrics:
        """Those of a plan that begins or goes on."""
        return _PlanMetrics(plan, policy, settings)

    def plan_ended(self, ledger: Ledger, cluster_id: str, plan_id: str) -> None:
        """No poll of a plan comes any more: it has ended or paused."""
        from rehome.metrics.readings import end_readings

        def readings() -> Iterator[Reading]:
            return end_readings(cluster_id, plan_id, _brokers(ledger, plan_id))

        emit(readings)

    def rates_set(self, cluster_id: str, reasons: Collection[RateReason]) -> None:
        """Rates of throttles were set."""
        from rehome.metrics.readings import rate_readings

        emit(rate_readings, cluster_id, reasons)

    def error(self, cluster_id: str, kind: ErrorKind) -> None:
        """A poll or a step has met an error."""
        from rehome.metrics.readings import error_readings

        emit(error_readings, cluster_id, kind)

    def snapshot_taken(self, cluster_id: str, at: datetime) -> None:
        """A snapshot is in the warehouse."""
        from rehome.metrics.readings import ClusterGauges, cluster_readings

        emit(cluster_readings, ClusterGauges(cluster_id, snapshot_taken_at=at))

    def plan_job(self, cluster_id: str, took: timedelta, gates: Mapping[str, bool]) -> None:
        """A plan job has ended."""
        from rehome.metrics.readings import PlanJob, plan_job_readings

        emit(plan_job_readings, PlanJob(cluster_id, took, gates))

    def cluster(
        self,
        ledger: Ledger,
        cluster_id: str,
        *,
        swept_at: datetime | None = None,
        foreign: int | None = None,
    ) -> None:
        """What the ledger knows of a cluster."""
        from rehome.metrics.readings import cluster_readings
        from rehome.warehouse import taken_at_of

        def readings() -> Iterator[Reading]:
            facts = _facts(ledger, cluster_id)
            if swept_at is not None:
                taken = installation.warehouse().latest_snapshot(cluster_id)
                if taken is not None:
                    facts = replace(facts, snapshot_taken_at=taken_at_of(taken))
                since = ledger.unsent_since()
                facts = replace(facts, unsent_since=0.0 if since is None else since.timestamp())
            return cluster_readings(replace(facts, swept_at=swept_at, foreign=foreign))

        emit(readings)


class _PlanMetrics(PlanMetrics):
    def __init__(self, plan: Plan, policy: Policy, settings: Settings) -> None:
        from rehome.execution.access.lease import ttl_s
        from rehome.metrics.readings import Polled

        fresh_for_s = ttl_s(settings)
        bytes_to_copy, brokers = plan.bytes_to_copy, plan.brokers
        of = plan.cluster_id, plan.plan_id
        self._plan = Polled(*of, policy, fresh_for_s, bytes_to_copy, brokers)

    def note_poll(self, poll: Poll) -> None:
        from rehome.metrics.readings import poll_readings

        emit(poll_readings, self._plan, poll)

    def note_step(self, done: Advance) -> None:
        from rehome.metrics.readings import step_readings

        emit(step_readings, self._plan, done)

    def note_copies(self, ledger: Ledger, pace: PaceFollower) -> None:
        from rehome.account.pace import pace_at_poll
        from rehome.metrics.readings import broker_readings

        def readings() -> Iterator[Reading]:
            recent = pace.read()
            plan_pace = pace_at_poll(recent, pace.gains)
            return broker_readings(self._plan, plan_pace, ledger.flying(self._plan.plan_id))

        emit(readings)


def _brokers(ledger: Ledger, plan_id: str) -> set[BrokerId]:
    """Of a plan; none where an earlier Rehome has recorded it, which sent nothing of brokers."""
    try:
        moves = ledger.planned_moves(plan_id)
    except RehomeError:
        return set()
    return {broker for move in moves for broker in (*move.current, *move.target)}


def _facts(ledger: Ledger, cluster_id: str) -> ClusterGauges:
    from rehome.account.clusters.cluster_evidence import read_cluster
    from rehome.metrics.readings import ClusterGauges

    evidence = read_cluster(ledger, cluster_id, utc_now())
    return ClusterGauges(
        cluster_id, plans=evidence.plans, orphaned=int(evidence.orphaned), owed=evidence.owed
    )


def _send(reading: Reading, chosen: Way) -> None:
    metric, name, tags = reading.metric, reading.metric.name, None
    if chosen is Way.TAGS:
        tags = {label.value: safe(reading.labels[label]) for label in metric.labels}
    else:
        name = dotted_name(metric, reading.labels)
    if metric.kind is MetricKind.GAUGE:
        stats.gauge(name, reading.value, tags=tags)
    else:
        stats.incr(name, int(reading.value), tags=tags)
