"""The mapping file of Prometheus's StatsD exporter: dotted names → names with labels. Pure."""

from __future__ import annotations

from typing import Any

from rehome.metrics.catalog import METRICS, STATSD_PREFIX, Metric, MetricSubject, in_prometheus

PLAN_TTL = "15m"
"""So long after the last poll a plan's series are still shown: its last values are no news."""


def statsd_mapping(prefix: str = STATSD_PREFIX) -> dict[str, Any]:
    """The file as plain types. Each metric has a rule for names with labels in them, and one for
    names with tags (``statsd_influxdb_enabled``, Datadog's).
    """
    return {"mappings": [rule for metric in METRICS for rule in _rules(metric, prefix)]}


def _rules(metric: Metric, prefix: str) -> list[dict[str, Any]]:
    rule: dict[str, Any] = {
        "match": f"{prefix}.{metric.name}",
        "match_metric_type": metric.kind.value,
        "name": in_prometheus(metric, prefix),
        "help": f"{metric.meaning} ({metric.unit})",
    }
    if metric.subject is MetricSubject.PLAN:
        rule["ttl"] = PLAN_TTL
    labels = {label.value: f"${at}" for at, label in enumerate(metric.labels, 1)}
    in_name = rule | {"match": rule["match"] + ".*" * len(labels), "labels": labels}
    return [rule, in_name]  # the exporter finds a name without wildcards only before the longer one
