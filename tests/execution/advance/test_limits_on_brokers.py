"""Broker sets, caps and targets on real brokers: planned on a snapshot, carried out, read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from local.process.waiting import wait_until
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.clock import utc_now
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.states import PlanState
from rehome.execution.completion.preferred_leaders import restore_preferred_leaders
from rehome.ledger.store import Ledger
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import replicas_of, run, state_of


def test_replicas_outside_of_their_broker_set_come_in_and_no_broker_exceeds_its_cap(
    gateway: OwnGateway, ledger: Ledger, approved: Callable[..., Plan], topics: Any
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


def test_every_broker_leads_its_minimum_and_its_share_of_what_producers_write(
    gateway: OwnGateway, ledger: Ledger, approved: Callable[..., Plan], topics: Any
) -> None:
    topic = topics.create([[1, 2]] * 4)
    topics.fill(topic, 20)
    snapshot = take_snapshot(gateway, utc_now())
    mine = [name == topic for name in snapshot.replicas.column("topic").to_pylist()]
    replicas = snapshot.replicas
    for name in ("bytes_in_per_s", "bytes_out_per_s"):  # as a history would have them
        replicas = replicas.append_column(name, pa.array([1000.0 * here for here in mine]))
    request = parse_request(
        {
            "action": "rebalance",
            "topics": [topic],
            "ignore_racks": True,
            "tolerance": 0.9,
            "one_sided": True,
            "tolerances": {"leader_bytes_in": 0.1, "potential_bytes_out": 0.1},
            "min_leaders": {topic: 1},
        }
    )
    planned = make_plan(replace(snapshot, replicas=replicas), request, PlanOptions(plan_id="led"))
    assert planned.summary.min_leaders is not None
    assert planned.summary.min_leaders.lacking_before == 3
    plan = approved(*planned.moves)
    assert run(plan, ledger, gateway).finished is PlanState.DONE
    restore_preferred_leaders(plan, gateway)

    def led() -> list[int]:
        return sorted(state_of(gateway, topic, number).leader or 0 for number in range(4))

    wait_until(lambda: led() == [1, 2, 3, 4], "each broker to lead one")
    held = Counter(broker for n in range(4) for broker in replicas_of(gateway, topic, n))
    assert held == dict.fromkeys((1, 2, 3, 4), 2)
