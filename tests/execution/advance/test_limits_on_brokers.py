"""Broker sets and caps on real brokers: planned on a snapshot, carried out, read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from include.cluster.gateway import ClusterGateway
from include.cluster.snapshot.take import take_snapshot
from include.domain.plan.plan import Plan
from include.domain.request.parameters import parse_request
from include.domain.run.states import PlanState
from include.ledger.base.database import utc_now
from include.ledger.store import Ledger
from include.planning.options import PlanOptions
from include.planning.planner import make_plan
from tests.execution.driven import replicas_of, run


def test_what_lies_outside_of_its_set_comes_in_and_no_broker_above_its_cap(
    gateway: ClusterGateway, ledger: Ledger, approved: Callable[..., Plan], topics: Any
) -> None:
    topic = topics.create([[1, 2], [2, 1], [1, 2]])
    topics.fill(topic, 20)
    snapshot = take_snapshot(gateway, utc_now())
    held = snapshot.replicas.column("broker").to_pylist().count(4)
    request = parse_request(
        {
            "action": "repair_racks",
            "topics": [topic],
            "ignore_racks": True,
            "broker_sets": [{"name": "far", "topics": [topic], "brokers": [2, 3, 4]}],
            "caps": {"brokers": {"4": {"replicas": held + 1}}},
        }
    )
    planned = make_plan(snapshot, request, PlanOptions(plan_id="limits"))
    end = run(approved(*planned.moves), ledger, gateway)
    assert end.finished is PlanState.DONE
    rows = [replicas_of(gateway, topic, partition) for partition in range(3)]
    assert all(set(row) <= {2, 3, 4} for row in rows)
    after = take_snapshot(gateway, utc_now()).replicas.column("broker").to_pylist()
    assert after.count(4) <= held + 1
    assert sum(4 in row for row in rows) == 1
