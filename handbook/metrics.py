"""The page that lists every metric, as the catalogue says."""

from __future__ import annotations

from handbook.markdown import table
from rehome.metrics.catalog import METRICS


def metrics_page() -> str:
    """Markdown: a row for each metric, in the order in which people read them."""
    rows = [
        (
            f"`{metric.name}`",
            metric.kind.value,
            metric.unit.value,
            ", ".join(f"`{label.value}`" for label in metric.labels),
            metric.meaning,
        )
        for metric in METRICS
    ]
    return f"""# Metrics

What Rehome emits through Airflow's own metrics (StatsD or OpenTelemetry). A gauge is a value at one
moment; a counter counts from the start of a process; a timer is how long something took.
[How to collect them](../monitoring.md).

{table(("metric", "kind", "unit", "labels", "meaning"), rows)}
"""
