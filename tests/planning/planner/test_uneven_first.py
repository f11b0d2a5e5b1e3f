"""Rebalances of large clusters whose replicas were placed without regard to racks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.param_types import TOPIC_SPREAD
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.effort.shed_options import Inner
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.planning.rebalance import solver
from rehome.planning.rebalance.uneven_first import make_even_first
from rehome.planning.search.state import Problem
from tests.planning.large import large_snapshot

PARTITIONS, BROKERS, CENTRES = 8_000, 30, 3


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each search began with moves that make partitions even."""
    starts: list[bool] = []

    def recorded(problem: Problem, inner: Inner) -> Problem | None:
        even = make_even_first(problem, inner)
        starts.append(even is not None)
        return even

    monkeypatch.setattr(solver, "make_even_first", recorded)
    return starts


def with_brokers(snapshot: Snapshot, brokers: np.ndarray) -> Snapshot:
    """The snapshot with its replicas on these brokers."""
    replicas = snapshot.replicas
    at = replicas.schema.get_field_index("broker")
    field = replicas.schema.field(at)
    return replace(snapshot, replicas=replicas.set_column(at, field, pa.array(brokers, field.type)))


def rebalanced(brokers: np.ndarray) -> Plan:
    """The plan for a large cluster with its replicas on these brokers, (partitions · 3,)."""
    snapshot = with_brokers(large_snapshot(PARTITIONS, BROKERS), brokers)
    request = ReassignmentRequest(Action.REBALANCE, tolerances={TOPIC_SPREAD: 0.1})
    return make_plan(snapshot, request, PlanOptions(plan_id="p"))


def replica_brokers() -> np.ndarray:
    return np.array(large_snapshot(PARTITIONS, BROKERS).replicas.column("broker"))


def copied(plan: Plan) -> list[Move]:
    """Its moves that copy a replica."""
    return [move for move in plan.moves if {*move.target} != {*move.current}]


def centres(brokers: tuple[int, ...]) -> int:
    """In how many data centres a partition is."""
    return len({broker % CENTRES for broker in brokers})


def test_no_repair_of_racks_copies_more_than_bands_need(starts: list[bool]) -> None:
    plan = rebalanced(np.random.default_rng(0).permutation(BROKERS)[replica_brokers()])
    assert starts == [True]
    assert (plan.summary.rack_violations_before or 0) > PARTITIONS / 2
    uneven = [move for move in copied(plan) if centres(move.current) < CENTRES]
    assert len(uneven) > 50
    assert {centres(move.target) for move in copied(plan)} == {CENTRES}
    assert plan.summary.bytes_to_move < 1.7 * (plan.summary.lower_bound_bytes or 0)
    size = np.array([b.size_bytes_after for b in plan.summary.brokers])
    assert np.abs(size / size.mean() - 1).max() < 0.025


def test_where_no_partition_can_be_even_at_once_they_move_all_the_same(starts: list[bool]) -> None:
    rows = replica_brokers().reshape(-1, 3)[:, :1] + np.arange(3) * CENTRES
    plan = rebalanced((rows % BROKERS).ravel())
    assert starts == [False]
    assert copied(plan)
    assert {centres(move.current) for move in copied(plan)} == {1}
    assert {centres(move.target) for move in copied(plan)} == {CENTRES}
