"""Readings on their way through Airflow's own metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.extras import airflow_metrics
from rehome.metrics import catalog
from rehome.metrics.catalog import Label
from rehome.metrics.readings import PlanJob, Reading, plan_job_readings
from tests.metrics.statsd_listener import StatsdListener, restart_stats


def some() -> Iterator[Reading]:
    """One of each kind; a plan's id may hold what StatsD takes for a separator."""
    at = {Label.CLUSTER: "c-1_x"}
    yield Reading(catalog.BYTES_LEFT, 5000, at)
    yield Reading(catalog.FRESH_UNTIL, 1.75e9, at | {Label.PLAN: "2030 a.b:c|d,e=f"})
    yield Reading(catalog.THROTTLE_CHANGES, 2, at | {Label.REASON: "set up"})
    yield from plan_job_readings(PlanJob("c-1_x", timedelta(seconds=1.5)))


def test_labels_follow_the_name_where_statsd_has_no_tags(statsd: StatsdListener) -> None:
    airflow_metrics.emit(some)
    wait_until(lambda: len(statsd.lines()) == 4, "four lines")
    assert statsd.lines() == [
        "airflow.rehome.plan.bytes_left.c-1_x:5000|g",
        "airflow.rehome.plan.fresh_until.c-1_x.2030_a_b_c_d_e_f:1750000000.0|g",
        "airflow.rehome.throttle_changes.c-1_x.set_up:2|c",
        "airflow.rehome.cluster.plan_job_s.c-1_x:1.5|g",
    ]


def test_labels_are_tags_where_the_backend_takes_them(
    statsd: StatsdListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
    restart_stats()
    airflow_metrics.emit(some)
    wait_until(lambda: len(statsd.lines()) == 4, "four lines")
    assert statsd.lines()[:2] == [
        "airflow.rehome.plan.bytes_left,cluster=c-1_x:5000|g",
        "airflow.rehome.plan.fresh_until,cluster=c-1_x,plan=2030_a_b_c_d_e_f:1750000000.0|g",
    ]


def failing(error: Exception) -> Reading:
    raise error


def test_without_a_backend_no_metric_is_computed() -> None:
    def never() -> Iterator[Reading]:
        yield failing(AssertionError("asked for"))

    airflow_metrics.emit(never)


def test_an_error_in_a_reading_is_logged_and_fails_no_task(
    statsd: StatsdListener, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Iterator[Reading]:
        yield failing(ValueError("no such label"))

    with caplog.at_level(logging.WARNING):
        airflow_metrics.emit(broken)
    assert "The run goes on without them" in caplog.text
    assert "no such label" in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_a_server_that_is_not_there_costs_no_time(
    monkeypatch: pytest.MonkeyPatch, statsd: StatsdListener, host: str
) -> None:
    statsd.close()
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", host)
    restart_stats()
    airflow_metrics.emit(some)  # looks the host's name up, once
    lookups: list[Any] = []

    def getaddrinfo(*asked: Any, **_: Any) -> list[Any]:
        lookups.append(asked)
        return []

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    for _ in range(10):
        airflow_metrics.emit(some)
    assert lookups == [], "each of which may take seconds"
