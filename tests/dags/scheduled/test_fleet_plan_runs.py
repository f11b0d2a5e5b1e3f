"""A plan of the fleet is handed over to a window, which carries it out as it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.run.states import PlanState
from rehome.warehouse import Warehouse
from tests.dags.site import Site
from tests.plugins.run.taken import taken

DAG = "rebalance_in_window"
FAST = 20_000_000


@pytest.mark.long  # in `make test` tests/plugins/fleet has the plan, and test_window the hand-over
def test_a_plan_of_the_fleet_is_carried_out_by_the_window_it_is_handed_over_to(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(opens: datetime) -> None:
        cron = f"{opens.minute} {opens.hour} * * *"
        path.write_text(
            "clusters:\n  main:\n    connection: kafka_default\n"
            f'    windows: [{{cron: "{cron}", hours: 1}}]\n'
            f"    targets: {{throttle: {FAST}}}\n"
        )

    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    write(datetime.now(UTC) + timedelta(hours=2))
    topic = site.topics.create([[1, 2]] * 6)
    site.topics.fill(topic, 300)
    warehouse = Warehouse((tmp_path / "warehouse").as_uri())
    taken(site.ledger, warehouse.write_snapshot(take_snapshot(site.gateway, datetime.now(UTC))))
    site.ledger.record_connection("kafka_default", site.cluster.cluster_id)

    def rows() -> list[tuple[int, ...]]:
        partitions = site.gateway.describe_topics([topic])[topic].partitions
        return [partition.replicas for partition in partitions.values()]

    before = rows()
    made = site.run(dag="plan_fleet", with_spark=True)
    assert made.state == "success", made.log
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.PLANNED
    assert rows() == before, "it carries nothing out"

    asked: Any = site.run(dag="control_reassignment", plan_id=plan.plan_id, action="next_window")
    assert asked.state == "success", asked.log
    write(datetime.now(UTC) - timedelta(minutes=1))
    run = site.run(dag=DAG)
    assert run.state == "success", run.log
    (done,) = site.ledger.plans()
    assert (done.state, done.plan_hash) == (PlanState.DONE, plan.plan_hash)
    assert rows() != before
    assert not site.ledger.throttles(open_only=True)
