"""Every metric by StatsD, with tags and without, as Prometheus knows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.process.waiting import wait_until
from rehome.extras import airflow_metrics
from rehome.metrics.catalog import METRICS, STATSD_PREFIX, in_prometheus
from rehome.metrics.readings import Reading
from tests.metrics.prometheus import Monitoring
from tests.metrics.statsd_listener import restart_stats, statsd_env

OURS = f'{{__name__=~"{STATSD_PREFIX}_rehome_.*"}}'


def one_of_each() -> Iterator[Reading]:
    for metric in METRICS:
        yield Reading(metric, 1, {label: f"a-{label}" for label in metric.labels})


@pytest.mark.long
@pytest.mark.parametrize("tags", [False, True], ids=["in names", "as tags"])
def test_prometheus_has_every_metric_with_its_labels(
    tags: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {
        (in_prometheus(metric), tuple(sorted((label, f"a-{label}") for label in metric.labels)))
        for metric in METRICS
    }
    with Monitoring(tmp_path) as monitoring, monkeypatch.context() as patched:
        for name, value in statsd_env(monitoring.statsd_port).items():
            patched.setenv(name, value)
        patched.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", str(tags))
        restart_stats()
        airflow_metrics.emit(one_of_each)
        wait_until(lambda: len(monitoring.now(OURS)) >= len(METRICS), "all of them", 240)
        found = {
            (
                sample.labels["__name__"],
                tuple(
                    sorted(
                        (name, value)
                        for name, value in sample.labels.items()
                        if name not in ("__name__", "instance", "job")
                    )
                ),
            )
            for sample in monitoring.now(OURS)
        }
    restart_stats()
    assert found == expected
