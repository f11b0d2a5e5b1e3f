"""A broker dies: found after the grace time, proposed, approved, healed, closed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator

from include.cluster.gateway import ClusterGateway
from include.cluster.snapshot.take import take_snapshot
from include.domain.run.states import PlanState
from include.ledger.store import Ledger
from include.warehouse import Warehouse
from include.watching.kinds import FindingKind
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome import assets
from rehome.operators.watch import WatchClustersOperator
from tests.conftest import Topics, impatient_gateway, revive
from tests.dags.runs import Run

RULES = (
    '{"grace_s": 1200, "snapshots_to_close": 1, "policies": {"dead_broker": "propose"}, '
    '"largest_throttle": 20000000}'
)


@pytest.fixture
def mortal(mortal_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Its brokers live again afterwards."""
    yield mortal_cluster
    revive(mortal_cluster)


@pytest.mark.long  # tests/watching shows in a few seconds that real brokers open and close it
def test_a_dead_broker_is_proposed_approved_healed_and_closed(
    mortal: LocalCluster,
    ledger: Ledger,
    rehome: Callable[..., Run],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REHOME_WATCH_RULES", RULES)
    extra = dict(mortal.client_settings())
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", connection(extra))
    now = datetime.now(UTC)
    topics = Topics(mortal)
    topic = topics.create([[3, 1], [1, 3], [2, 1]])
    topics.fill(topic, 60)
    warehouse = Warehouse((tmp_path / "warehouse").as_uri())
    with impatient_gateway(mortal) as gateway:
        mortal.kill(3)
        wait_until(lambda: 3 not in gateway.describe_cluster().brokers, "broker 3 to be gone", 240)
        ago = [timedelta(minutes=minutes) for minutes in (20, 10, 0)]
        assert watch(gateway, warehouse, [now - each for each in ago[:2]]) == []
        (start,) = watch(gateway, warehouse, [now])
        asked = list[str]()

        def approve(self: Any, context: Any) -> Any:
            asked.append(self.body)
            answer = {"chosen_options": ["Approve"], "params_input": {"throttle": ""}}
            who = {"responded_by_user": {"name": "ann"}, "responded_at": datetime.now(UTC)}
            return self.execute_complete(context, answer | who)

        monkeypatch.setattr(ApprovalOperator, "execute", approve)
        run = rehome(mortal, **start["conf"])
        assert run.state == "success", run.log
        assert len(asked) == 1
        (plan,) = ledger.plans()
        assert (plan.state, plan.approver) == (PlanState.DONE, "ann")
        assert (plan.action, plan.request["brokers"]) == ("fix_offline_replicas", [3])
        assert FindingKind.DEAD_BROKER in kinds(ledger, mortal)
        watch(gateway, warehouse, [datetime.now(UTC)])
        assert FindingKind.DEAD_BROKER not in kinds(ledger, mortal), "it holds nothing any more"


def connection(extra: dict[str, Any]) -> str:
    return json.dumps({"conn_type": "kafka", "extra": extra})


def kinds(ledger: Ledger, cluster: LocalCluster) -> set[FindingKind]:
    return {each.kind for each in ledger.open_findings(cluster.cluster_id)}


def watch(
    gateway: ClusterGateway, warehouse: Warehouse, moments: list[datetime]
) -> list[dict[str, Any]]:
    """Snapshots by a clock that is set, and one run of the task on them."""
    events = []
    for at in moments:
        snapshot = take_snapshot(gateway, at)
        uri = warehouse.write_snapshot(snapshot)
        about = {"cluster_id": snapshot.cluster_id, "connection": "kafka_default", "uri": uri}
        events.append(SimpleNamespace(extra={**about, "taken_at": at.isoformat()}))
    task = WatchClustersOperator(task_id="watch")
    context: Any = {"triggering_asset_events": {assets.SNAPSHOTS: events}, "task": task}
    return task.execute(context)
