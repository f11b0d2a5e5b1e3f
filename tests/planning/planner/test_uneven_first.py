"""Rebalances of large clusters whose replicas were placed without regard to racks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.clusters import CASES, build
from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.limits import BrokerCaps, BrokerLimits
from rehome.domain.request.param_types import TOPIC_SPREAD
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.effort.shed_options import Inner
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.planning.rebalance import solver
from rehome.planning.rebalance.uneven_first import make_even_first
from rehome.planning.search.state import Problem, Search
from tests.planning.large import large_snapshot
from tests.planning.posed import posed

PARTITIONS, BROKERS, CENTRES = 8_000, 30, 3
SMALL = build(CASES[4], 900, 12, seed=3).arrays
UNEVEN = replace(SMALL, rows=np.random.default_rng(0).permutation(12).astype(np.int32)[SMALL.rows])
IN_TWO = replace(UNEVEN.brokers, rack_paths=tuple((f"r{n % 2}",) for n in range(12)))
CAPS = BrokerCaps(default=BrokerLimits(replicas=1_000))
FIRST = np.arange(12) == 0


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each search began with moves that make partitions even."""
    starts: list[bool] = []

    def recorded(search: Search, inner: Inner) -> Problem | None:
        even = make_even_first(search, inner)
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


def crowded(rows: np.ndarray, centre: int, some: np.ndarray) -> np.ndarray:
    """The same with all replicas of some partitions in one data centre."""
    first = np.arange(len(rows)) % (BROKERS // CENTRES)
    apart = (first[:, None] + np.arange(CENTRES)) % (BROKERS // CENTRES)
    return np.where(some[:, None], apart * CENTRES + centre, rows)


@pytest.mark.parametrize("which", ["a tenth", "all of a broker"])
def test_brokers_come_into_their_bands_though_no_single_move_evens_partitions_out(
    starts: list[bool], which: str
) -> None:
    rows = replica_brokers().reshape(-1, CENTRES)
    tenth = np.arange(len(rows)) % 10 == 0
    some = tenth if which == "a tenth" else (rows == 0).any(axis=1)
    plan = rebalanced(crowded(rows, 0, some).ravel())
    assert starts == [True]
    size = np.array([b.size_bytes_after for b in plan.summary.brokers])
    assert np.abs(size / size.mean() - 1).max() < 0.025
    assert (plan.summary.rack_violations_after or 0) < (plan.summary.rack_violations_before or 0)


def test_an_expansion_copies_to_its_brokers_alone(starts: list[bool]) -> None:
    rows, new = replica_brokers().reshape(-1, CENTRES), (27, 28, 29)
    rows = np.random.default_rng(0).permutation(27)[rows * 27 // BROKERS]
    twice = (np.diff(np.sort(rows, axis=1), axis=1) == 0).any(axis=1)
    rows[twice] = (rows[twice][:, :1] + np.arange(CENTRES)) % 27
    snapshot = with_brokers(large_snapshot(PARTITIONS, BROKERS), rows.ravel())
    request = ReassignmentRequest(Action.EXPAND, brokers=new, tolerances={TOPIC_SPREAD: 0.1})
    plan = make_plan(snapshot, request, PlanOptions(plan_id="p"))
    assert starts == [True]
    assert copied(plan)
    assert {b for move in copied(plan) for b in set(move.target) - set(move.current)} == {*new}
    size = np.array([b.size_bytes_after for b in plan.summary.brokers])
    assert np.abs(size / size.mean() - 1)[list(new)].max() < 0.03


def posed_for(arrays: ClusterArrays, **changes: Any) -> Problem:
    return replace(posed(arrays, ReassignmentRequest(Action.REBALANCE)), **changes)


@pytest.mark.parametrize(
    ("problem", "moves_first"),
    [
        pytest.param(posed_for(UNEVEN), True, id="uneven"),
        pytest.param(posed_for(SMALL), False, id="even"),
        pytest.param(posed_for(replace(UNEVEN, brokers=IN_TWO)), False, id="few racks"),
        pytest.param(posed_for(UNEVEN, leaving=FIRST), False, id="a broker is to be emptied"),
        pytest.param(posed_for(UNEVEN, gives=~FIRST), False, id="a broker takes no part"),
        pytest.param(posed_for(apply_limits(UNEVEN, CAPS, ())), False, id="caps"),
    ],
)
def test_where_partitions_do_not_move_first_nothing_has_moved(
    problem: Problem, moves_first: bool
) -> None:
    before = problem.layout.rows.copy()
    even = make_even_first(Search(problem), (0.98, 0.5, 0.5))
    assert (even is not None) == moves_first
    assert (problem.layout.rows == before).all() == (not moves_first)
