"""The same metrics through Airflow's OpenTelemetry backend, received by OTLP."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehome.metrics.catalog import METRICS
from tests.metrics.otlp_receiver import OtlpReceiver

ROOT = Path(__file__).resolve().parents[2]
SENDER = """
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils

stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)

from rehome.metrics.catalog import METRICS, Label
from rehome.metrics.readings import Reading
from rehome.extras import airflow_metrics

def each():
    for at, metric in enumerate(METRICS, 1):
        labels = {label: f"a {label}" for label in metric.labels}
        yield Reading(metric, at, labels)
        yield Reading(metric, at, labels)

airflow_metrics.emit(each)
"""


@pytest.mark.slow
def test_every_metric_arrives_with_its_labels_as_attributes() -> None:
    """In a process of its own: OpenTelemetry has one provider for each."""
    with OtlpReceiver() as receiver:
        subprocess.run(
            [sys.executable, "-c", SENDER],
            env=os.environ | receiver.env() | {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"},
            check=True,
            timeout=600,
            cwd=ROOT,
        )
        expected = {}
        for at, metric in enumerate(METRICS, 1):
            labels = tuple((label.value, f"a_{label}") for label in metric.labels)
            grown = 2 * at if metric.kind == "counter" else at
            expected[f"airflow.{metric.name}", labels] = grown
        assert receiver.received == expected
