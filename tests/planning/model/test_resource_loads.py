"""Balance in several resources at once, on clusters whose loads are made up in arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.clusters import CASES, Case, build
from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource, placed_resources
from rehome.planning.model.arrays import ClusterArrays, broker_sums
from rehome.planning.model.resource_loads import placed_weights
from rehome.planning.rebalance.rebalance import plan_rebalance
from rehome.planning.result.outcome import Outcome

STRICT = {"replicas": 0.05, "leaders": 0.05, "bytes_in": 0.05, "bytes_out": 0.05}
PARTITIONS, BROKERS = 6_000, 60


def made(case: Case, **options: Any) -> tuple[ClusterArrays, Outcome]:
    arrays = build(case, PARTITIONS, BROKERS).arrays
    return arrays, plan_rebalance(arrays, ReassignmentRequest(Action.REBALANCE, **options))


def copies(outcome: Outcome) -> int:
    rows, origin = outcome.layout.rows, outcome.layout.origin
    return int((rows[:, :, None] != origin[:, None, :]).all(axis=2).sum())


def deviations(arrays: ClusterArrays, rows: np.ndarray) -> dict[str, float]:
    """The furthest that any broker is from the mean, per resource."""
    loads = {
        resource: broker_sums(rows, weight, BROKERS)
        for resource, weight in zip(placed_resources({}), placed_weights(arrays), strict=True)
    }
    loads[Resource.LEADERS] = np.bincount(rows[:, 0], minlength=BROKERS).astype(float)
    loads[Resource.BYTES_OUT] = np.bincount(rows[:, 0], arrays.bytes_out, BROKERS).astype(float)
    return {r.value: float(np.abs(load / load.mean() - 1).max()) for r, load in loads.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["expansion", pytest.param("skew", marks=pytest.mark.long), "rf2", "rates"]
)
def test_every_broker_ends_within_tolerance_in_all_five_resources(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    arrays, outcome = made(case, tolerances=STRICT)
    assert outcome.infeasible == ()
    found = deviations(arrays, outcome.layout.rows)
    assert found["bytes"] <= 0.0201
    assert max(found.values()) <= 0.0501
    assert not outcome.tree_after.violations(outcome.layout.rows).any()


@pytest.mark.slow
def test_without_tolerances_few_replicas_move_and_traffic_is_even_where_it_is_known() -> None:
    arrays, outcome = made(CASES[0])
    _, strict = made(CASES[0], tolerances=STRICT)
    moves = [copies(o) for o in (outcome, strict)]
    found = deviations(arrays, outcome.layout.rows)
    assert found["bytes"] <= 0.0201
    assert max(found["bytes_in"], found["bytes_out"]) <= 0.0501
    assert found["replicas"] > 0.1
    assert moves[0] < moves[1] / 2


@pytest.mark.slow
def test_planning_again_on_a_balanced_cluster_plans_nothing() -> None:
    arrays, outcome = made(CASES[0], tolerances=STRICT)
    again = replace(arrays, rows=outcome.layout.rows.copy(), leader=outcome.layout.rows[:, 0])
    request = ReassignmentRequest(Action.REBALANCE, tolerances=STRICT)
    assert not len(plan_rebalance(again, request).layout.changed_partitions())


@pytest.mark.slow
def test_leaders_alone_are_evened_out_without_copies() -> None:
    arrays, first = made(CASES[2], tolerances={"bytes_in": None, "bytes_out": None})
    settled = replace(arrays, rows=first.layout.rows.copy())
    free = {"replicas": None, "bytes_in": None, "bytes_out": None, "leaders": 0.05}
    outcome = plan_rebalance(settled, ReassignmentRequest(Action.REBALANCE, tolerances=free))
    assert len(outcome.layout.changed_partitions())
    assert (np.sort(outcome.layout.rows, axis=1) == np.sort(outcome.layout.origin, axis=1)).all()
    assert deviations(arrays, outcome.layout.rows)["leaders"] <= 0.0501
