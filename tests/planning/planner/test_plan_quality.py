"""How good plans are, and how long they take: against an exact solver, and at scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.planning.clusters import Cluster, cluster
from tests.planning.large import large_snapshot

TOLERANCE = 0.05


def small(seed: int) -> Cluster:
    """Nine brokers in three racks, a new broker in each; 60 partitions, one replica per rack."""
    rng = np.random.default_rng(seed)
    racks = [f"/r{broker % 3}" for broker in range(9)]
    rows = [[int(rack + 3 * rng.integers(0, 2)) for rack in rng.permutation(3)] for _ in range(60)]
    return cluster(racks, rows, rng.lognormal(4, 1, 60).astype(int).clip(1, 400).tolist())


def fewest_bytes(of: Cluster) -> float:
    """The least that any plan copies which puts every broker into its band (mixed-integer)."""
    partitions = list(of.replicas)
    count, brokers = len(partitions), len(of.racks)
    size = np.array([of.sizes[partition] for partition in partitions])
    held = np.zeros((count, brokers))
    for index, partition in enumerate(partitions):
        held[index, list(of.replicas[partition])] = 1
    share = size.sum() * 3 / brokers
    variable = np.arange(count * brokers).reshape(count, brokers)
    loads = _rows([(variable[:, b], size) for b in range(brokers)], variable.size)
    racks = _rows(
        [(variable[p, r::3], np.ones(3)) for p in range(count) for r in range(3)], variable.size
    )
    low = np.r_[np.full(brokers, share * (1 - TOLERANCE)), np.ones(3 * count)]
    high = np.r_[np.full(brokers, share * (1 + TOLERANCE)), np.ones(3 * count)]
    solved = milp(
        (size[:, None] * (1 - held)).ravel(),
        constraints=LinearConstraint(vstack([loads, racks]), low, high),
        integrality=np.ones(variable.size),
        bounds=Bounds(0, 1),
        options={"time_limit": 10, "mip_rel_gap": 0.01},
    )
    assert solved.mip_dual_bound is not None
    return float(solved.mip_dual_bound)


def _rows(rows: list[tuple[np.ndarray, np.ndarray]], width: int) -> csr_array:
    data = np.concatenate([np.asarray(values, float) for _, values in rows])
    columns = np.concatenate([columns for columns, _ in rows])
    starts = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    return csr_array((data, columns, starts), shape=(len(rows), width))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_rebalance_moves_hardly_more_than_an_exact_solver(seed: int) -> None:
    of = small(seed)
    request = ReassignmentRequest(Action.REBALANCE, tolerance=TOLERANCE)
    summary = make_plan(of.snapshot(), request, PlanOptions(plan_id="p")).summary
    least = fewest_bytes(of)
    ratio = summary.bytes_to_move / least
    print(f"seed {seed}: {summary.bytes_to_move} bytes, {ratio:.3f} x the exact bound")
    assert summary.infeasible == ()
    assert summary.lower_bound_bytes <= least * 1.001
    assert ratio < 1.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "partitions", "brokers"),
    [
        (Action.REBALANCE, 6_667, 40),
        (Action.REBALANCE, 100_000, 300),
        (Action.DRAIN, 6_667, 40),
        pytest.param(Action.DRAIN, 100_000, 300, marks=pytest.mark.long),
    ],
)
def test_a_large_cluster_is_planned_close_to_the_bound(
    action: Action, partitions: int, brokers: int
) -> None:
    new, drained = (0.2, ()) if action is Action.REBALANCE else (0.0, tuple(range(0, brokers, 20)))
    snapshot = large_snapshot(partitions, brokers, new=new)
    summary = make_plan(
        snapshot, ReassignmentRequest(action, brokers=drained), PlanOptions(plan_id="p")
    ).summary
    assert summary.bytes_to_move < 1.02 * summary.lower_bound_bytes
    assert summary.rack_violations_after == 0


@pytest.mark.slow
def test_a_lower_replication_factor_of_a_large_cluster_leaves_it_level() -> None:
    snapshot = large_snapshot(100_000, 60)
    request = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=2)
    summary = make_plan(snapshot, request, PlanOptions(plan_id="p")).summary
    load = np.array([broker.size_bytes_after for broker in summary.brokers])
    assert summary.partitions == 100_000
    assert summary.bytes_to_move == summary.rack_violations_after == 0
    assert load.max() <= 1.05 * load.mean()
