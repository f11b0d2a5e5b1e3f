"""What smaller budgets reach, against plans that were made with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.clusters import CASES, build
from rehome.domain.actions import Action
from rehome.domain.plan.figures import BudgetPoint
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.rebalance.rebalance import plan_expansion, plan_rebalance
from rehome.planning.result.outcome import Outcome
from tests.planning.planner.test_determinism import cluster
from tests.planning.posed import PLAIN
from tests.planning.rebalance.test_target_costs import cost

INSTANCE = build(next(case for case in CASES if case.name == "expansion"), 64, 8)
REBALANCE = ReassignmentRequest(Action.REBALANCE, tolerance=0.05, dry_run=True)


def rebalanced(**options: Any) -> Outcome:
    return plan_rebalance(INSTANCE.arrays, replace(REBALANCE, **options), PLAIN)


@pytest.fixture(scope="module")
def whole() -> Outcome:
    return rebalanced()


@pytest.fixture(scope="module")
def curve(whole: Outcome) -> tuple[BudgetPoint, ...]:
    rows, load = whole.layout.rows.copy(), whole.layout.load.copy()
    points = whole.curve()
    assert (whole.layout.rows == rows).all(), "working it out leaves the plan as it is"
    assert (whole.layout.load == load).all()
    return points


def off_share(outcome: Outcome) -> np.ndarray:
    """Per broker; counted from rows and sizes, against the middle of the plan's bands."""
    rows, size = outcome.layout.rows, outcome.layout.size
    assert outcome.bands is not None
    low, high = (band[Resource.BYTES] for band in (outcome.bands.low, outcome.bands.high))
    held = np.bincount(rows.ravel(), np.repeat(size, rows.shape[1]), len(low))
    return held / ((low + high) / 2) - 1


@pytest.mark.slow
def test_each_point_is_the_plan_that_is_made_with_its_budget(
    curve: tuple[BudgetPoint, ...],
) -> None:
    assert len(curve) >= 5
    for point in curve[1:-1]:
        made = rebalanced(budget_bytes=point.budget_bytes)
        assert (point.bytes_to_move, point.replica_moves) == cost(made)
        assert point.furthest["bytes"] == pytest.approx(abs(off_share(made)).max(), abs=1e-3)


@pytest.mark.slow
def test_leaders_and_topics_of_a_point_are_those_of_its_plan_too() -> None:
    tolerances = {"replicas": 0.1, "leaders": 0.1, "topic_spread": 0.1}
    asked = parse_request({"action": "rebalance", "dry_run": True, "tolerances": tolerances})
    arrays = ClusterArrays.from_snapshot(cluster())
    points = plan_rebalance(arrays, asked).curve()[1:-1]
    assert len(points) == 4
    for point in points[:2]:
        made = plan_rebalance(arrays, replace(asked, budget_bytes=point.budget_bytes))
        (mine,) = (each for each in made.curve() if each.bytes_to_move == cost(made)[0])
        assert point.furthest == mine.furthest


@pytest.mark.slow
def test_it_goes_from_today_to_the_whole_plan_and_more_bytes_reach_more(
    curve: tuple[BudgetPoint, ...], whole: Outcome
) -> None:
    assert (curve[0].bytes_to_move, curve[0].replica_moves) == (0, 0)
    assert (curve[-1].bytes_to_move, curve[-1].replica_moves) == cost(whole)
    copied = [point.bytes_to_move for point in curve]
    assert copied == sorted(set(copied))
    reached = [point.furthest["bytes"] for point in curve]
    assert reached == sorted(reached, reverse=True)
    assert reached[-1] <= 0.05 < reached[0]


@pytest.mark.slow
def test_the_curve_of_a_plan_cut_by_a_budget_shows_what_more_would_reach(
    curve: tuple[BudgetPoint, ...],
) -> None:
    budget_bytes = curve[2].budget_bytes
    points = rebalanced(budget_bytes=budget_bytes).curve()
    assert curve[2].bytes_to_move in [point.bytes_to_move for point in points]
    assert points[-1].bytes_to_move > budget_bytes


@pytest.mark.slow
def test_an_expansion_is_measured_by_the_brokers_that_it_fills() -> None:
    new = INSTANCE.arrays.load(INSTANCE.arrays.rows, None).argmin()
    request = replace(REBALANCE, action=Action.EXPAND, brokers=(int(new),))
    expanded = plan_expansion(INSTANCE.arrays, request)
    points = expanded.curve()
    assert points[0].furthest["bytes"] == 1.0  # it is empty
    assert points[-1].furthest["bytes"] == pytest.approx(abs(off_share(expanded)[new]), abs=1e-3)
    held = INSTANCE.arrays.load(INSTANCE.arrays.rows, INSTANCE.arrays.size_bytes)
    assert points[-1].furthest["bytes"] < held.max() / held.mean() - 1, "others may hold more"


def test_only_a_plan_to_look_at_has_one() -> None:
    assert rebalanced(dry_run=False).curve() == ()
