"""A window's plan has the rates of single brokers that the entry of its cluster gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE
from tests.dags.clusters import no_throttles, throttles_become
from tests.dags.site import Site

ENTRY = """
clusters:
  main:
    connection: kafka_default
    targets:
      throttle: 20 MB/s
      throttle_by_broker:
        3: {follower: 3 MB/s}
        4: {leader: 4000000, follower: 2 MB/s}
        9: 1 MB/s
"""
"""No broker of the cluster has the id 9."""


def test_a_plan_of_a_window_has_the_rates_by_broker_of_its_clusters_entry(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clusters.yaml"
    path.write_text(ENTRY)
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    topic = site.topics.create([[4, 2], [4, 1]])
    site.topics.fill(topic, 100, size_bytes=10_000)
    before = no_throttles(site.gateway, [topic])
    run = site.run(dag="rebalance_in_window", action="drain", brokers=[4], topics=[topic])
    assert run.state == "success", run.log
    assert "The cluster's targets set throttle=20 MB/s, throttle_by_broker={" in run.log
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.DONE
    assert plan.request["throttle_by_broker"] == {
        "3": {"follower": 3_000_000},
        "4": {"leader": 4_000_000, "follower": 2_000_000},
        "9": {"leader": 1_000_000, "follower": 1_000_000},
    }
    own = {
        (entry.resource, entry.key)
        for entry in site.ledger.throttles(plan.plan_id)
        if entry.resource in map(ConfigResource.broker, (3, 4, 9))
    }
    assert own == {
        (ConfigResource.broker(3), FOLLOWER_RATE),
        (ConfigResource.broker(4), LEADER_RATE),
        (ConfigResource.broker(4), FOLLOWER_RATE),
    }
    throttles_become(site.gateway, [topic], before)
