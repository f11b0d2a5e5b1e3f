"""Names of a metric on the way from Airflow to Prometheus."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rehome.metrics.catalog import STATSD_PREFIX, Label, Metric, MetricKind

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def safe(value: str) -> str:
    """A label's value as every backend takes it: what separates names or tags becomes ``_``."""
    return _NOT_IN_NAMES.sub("_", value)


def dotted_name(metric: Metric, labels: Mapping[Label, str]) -> str:
    """The name with its labels' values, for StatsD without tags: ``rehome.plan.moves.ID.done``."""
    return ".".join((metric.name, *(safe(labels[label]) for label in metric.labels)))


def in_prometheus(metric: Metric, prefix: str = STATSD_PREFIX) -> str:
    """The name that Prometheus knows it by, through StatsD's exporter and OpenTelemetry alike."""
    name = f"{prefix}.{metric.name}".replace(".", "_")
    return f"{name}_total" if metric.kind is MetricKind.COUNTER else name
