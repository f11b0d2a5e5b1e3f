"""Predicted time: bytes, slots shared by tiny moves, and the poll that notices the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.pace import QUICK_MOVE_S, Pace
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.planning.clusters import cluster

RACKS = ["/r0", "/r1", "/r2"]


def drained(sizes: list[int], **options: float) -> Plan:
    """Broker 0's replicas go to broker 2: brokers 0 and 1 lead by turns."""
    rows = [(0, 1) if number % 2 else (1, 0) for number in range(len(sizes))]
    request = parse_request({"action": "drain", "brokers": [0], "max_moves_per_broker": 2})
    snapshot = cluster(RACKS, rows, sizes).snapshot()
    pace = {"rate_bytes_per_s": 100, "throttle_efficiency": 0.5, **options}
    return make_plan(snapshot, request, PlanOptions(plan_id="p", **pace))  # type: ignore[arg-type]


def test_the_last_poll_comes_on_top_of_the_bytes() -> None:
    assert drained([1000] * 4).summary.predicted_s == pytest.approx(80)
    assert drained([1000] * 4, reaction_s=15).summary.predicted_s == pytest.approx(95)


def test_empty_partitions_take_their_part_of_a_slot() -> None:
    # 20 at a time share the two slots of the broker that receives all of them.
    assert drained([0] * 100, reaction_s=10).summary.predicted_s == pytest.approx(50 + 10)


def test_few_partitions_at_the_controller_make_a_plan_slow() -> None:
    few = drained([0] * 100, reaction_s=10, max_partitions_in_flight=5)
    assert few.summary.predicted_s == pytest.approx(100 / 5 * 10 + 10)


def test_a_plan_without_moves_takes_no_time() -> None:
    nothing = cluster(RACKS, [(1, 2)] * 3, [5] * 3).snapshot()
    request = parse_request({"action": "drain", "brokers": [0]})
    options = PlanOptions(plan_id="p", rate_bytes_per_s=100, reaction_s=10)
    assert make_plan(nothing, request, options).summary.predicted_s == 0.0


def test_small_moves_take_neither_part_of_a_slot_nor_a_place() -> None:
    few = drained([0] * 100, reaction_s=10, max_partitions_in_flight=5, small_bytes=9)
    assert few.summary.predicted_s == pytest.approx(100 * QUICK_MOVE_S + 10)
    many = drained([0] * 1_000, reaction_s=0, small_bytes=9)  # 1,000 of a topic of 1,000
    assert many.summary.predicted_s == pytest.approx(1_000 * 10 * QUICK_MOVE_S)
    larger = drained([10] * 100, reaction_s=10, max_partitions_in_flight=5, small_bytes=9)
    assert larger.summary.predicted_s == pytest.approx(100 / 5 * 10 + 10)


def test_what_sends_more_than_a_small_move_takes_its_place() -> None:
    snapshot = cluster([""] * 4, [(0,)] * 100, [6] * 100).snapshot()
    request = parse_request({"action": "set_replication_factor", "replication_factor": 3})
    options = PlanOptions("p", 10**9, reaction_s=10, max_partitions_in_flight=5, small_bytes=9)
    assert make_plan(snapshot, request, options).summary.predicted_s == pytest.approx(210)
    options = replace(options, small_bytes=12)
    assert make_plan(snapshot, request, options).summary.predicted_s == pytest.approx(10.05)


def test_small_copies_take_the_time_of_their_bytes() -> None:
    pace = Pace(100.0, reaction_s=10, max_moves_per_broker=1, small_bytes=5)
    assert pace.copies_s(np.array([0, 5, 6, 500])).tolist() == [0.0, 0.05, 1.0, 5.0]
