"""Hands Rehome's metrics to Airflow's own: StatsD, Datadog or OpenTelemetry, as ``[metrics]`` says.

No poll or step fails because metrics cannot be sent, or waits for them: StatsD's are single
datagrams, and OpenTelemetry sends from a thread of its own.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, ParamSpec

from airflow.providers.common.compat.sdk import conf

from rehome import installation
from rehome.airflow_versions import stats

if TYPE_CHECKING:
    from include.domain.plan.plan import Plan
    from include.domain.run.run_policy import Policy
    from include.ledger.store import Ledger
    from include.metrics.readings import ClusterGauges, Polled, Reading

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
    """Send what a function of ``include.metrics.readings`` returns.

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


def polled(plan: Plan, policy: Policy) -> Polled:
    """The plan that a poll or a step of this installation is about."""
    from include.execution.access.lease import ttl_s
    from include.metrics.readings import Polled

    fresh_for_s = ttl_s(installation.settings())
    return Polled(plan.cluster_id, plan.plan_id, policy, fresh_for_s, plan.bytes_to_copy)


def emit_cluster(
    ledger: Ledger,
    cluster_id: str,
    *,
    swept_at: datetime | None = None,
    foreign: int | None = None,
) -> None:
    """Send what the ledger knows of a cluster.

    :param swept_at: when the sweep read it; None = another task than the sweep reports.
    :param foreign: how many throttles no plan has set; None = not known.
    """
    from include.metrics.readings import cluster_readings
    from include.warehouse import taken_at_of

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


def _facts(ledger: Ledger, cluster_id: str) -> ClusterGauges:
    from include.execution.access.lease import orphaned
    from include.metrics.readings import ClusterGauges

    active = ledger.active_plan(cluster_id)
    return ClusterGauges(
        cluster_id,
        plans=ledger.plan_states_on(cluster_id),
        orphaned=int(active is not None and orphaned(active, ledger)),
        owed=ledger.owed_on(cluster_id),
    )


def _send(reading: Reading, chosen: Way) -> None:
    from include.metrics.catalog import MetricKind
    from include.metrics.naming import dotted, safe

    metric, name, tags = reading.metric, reading.metric.name, None
    if chosen is Way.TAGS:
        tags = {label.value: safe(reading.labels[label]) for label in metric.labels}
    else:
        name = dotted(metric, reading.labels)
    if metric.kind is MetricKind.GAUGE:
        stats.gauge(name, reading.value, tags=tags)
    else:
        stats.incr(name, int(reading.value), tags=tags)
