"""A drain on brokers as Prometheus sees it: every panel of the dashboard has data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.process.waiting import wait_until
from rehome.domain.run.states import PlanState
from tests.dags.site import Site
from tests.metrics.prometheus import MONITORING, Monitoring
from tests.metrics.statsd_listener import restart_stats, statsd_env

pytestmark = pytest.mark.long
RATE = 1_000_000


@pytest.fixture
def monitoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitoring]:
    """Gets all that this process sends from now on."""
    with Monitoring(tmp_path) as servers, monkeypatch.context() as patched:
        for name, value in statsd_env(servers.statsd_port).items():
            patched.setenv(name, value)
        restart_stats()
        yield servers
    restart_stats()


def panel_queries() -> Iterator[tuple[str, str]]:
    """Each panel's title and each of its queries, for all clusters and plans."""
    for panel in json.loads((MONITORING / "grafana_dashboard.json").read_text())["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"].replace("$__rate_interval", "20s")
            yield panel["title"], expression.replace("$cluster", ".*").replace("$plan", ".*")


def test_every_panel_has_data_during_a_drain_and_every_rule_can_be_judged(
    site: Site, monitoring: Monitoring
) -> None:
    topic = site.topics.create([[4, 1], [2, 4], [4, 3]])
    site.topics.fill(topic, 700, size_bytes=10_000)
    window_end = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    run = site.run(
        action="drain", brokers=[4], topics=[topic], throttle=RATE, window_end=window_end
    )
    assert run.state == "success", run.log
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.DONE
    swept = site.run(dag="sweep_throttles")
    assert swept.state == "success", swept.log
    watched = site.run(dag="watch_clusters")
    assert watched.state == "success", watched.log
    counted = "airflow_rehome_cluster_findings"
    wait_until(lambda: monitoring.now(counted), "the last metrics to be read", 240)

    empty = [
        (title, expression)
        for title, expression in panel_queries()
        if not any(
            math.isfinite(value)
            for sample in monitoring.since_the_start(expression)
            for _, value in sample.values
        )
    ]
    assert not empty

    def series(name: str, labels: str = "") -> list[float]:
        samples = monitoring.since_the_start(f"airflow_rehome_{name}{{{labels}}}")
        assert {sample.labels["cluster"] for sample in samples} == {plan.cluster_id}
        return [value for sample in samples for _, value in sample.values]

    assert max(series("plan_bytes_total")) == plan.bytes_total
    moved = series("bytes_moved_total")[-1]
    assert plan.bytes_total * 0.9 <= moved <= plan.bytes_total * 1.2, "each byte is counted once"
    left = [value for value in series("plan_bytes_left") if value]
    assert any(0 < value < plan.bytes_total for value in left)
    assert series("plan_throttle_asked")[0] == RATE
    assert max(series("plan_throttle_delivered")) > 0
    assert max(series("plan_moves", 'state="admitted"')) > 0
    assert max(series("plan_lag_largest")) > 0
    assert series("moves_admitted_total")[-1] == series("moves_ended_total", 'state="done"')[-1]
    assert series("throttle_changes_total", 'reason="set_up"')[-1] == 1
    assert series("cluster_plans", 'state="done"')[-1] == 1
    assert series("cluster_throttles_owed")[-1] == 0
    named = monitoring.since_the_start("airflow_rehome_plan_fresh_until")
    assert {sample.labels["plan"] for sample in named} == {plan.plan_id}

    fresh = "airflow_rehome_plan_fresh_until > time()"
    assert not monitoring.now(fresh), "the plan has ended: its charts and alerts end with it"
    assert monitoring.since_the_start(fresh)
    healths = {rule["name"]: (rule["health"], rule.get("lastError")) for rule in monitoring.rules()}
    assert set(healths.values()) == {("ok", None)}, healths
    for rule in monitoring.rules():
        assert rule["state"] == "inactive", rule
