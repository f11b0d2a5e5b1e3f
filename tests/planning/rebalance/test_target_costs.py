"""What each target costs, against plans that were made without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.clusters import CASES, build
from rehome.domain.actions import Action
from rehome.domain.array_types import NONE
from rehome.domain.plan.figures import TargetPrice
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.effort.optional_parts import FAST, Parts
from rehome.planning.rebalance import target_costs
from rehome.planning.rebalance.rebalance import plan_rebalance
from rehome.planning.result.outcome import Outcome
from tests.planning.clusters import cluster
from tests.planning.planned import plan
from tests.planning.posed import PLAIN

TOLERANCES = {"replicas": 0.2, "bytes_in": 0.2, "leaders": 0.2, "bytes_out": 0.2}
EXPANSION = build(next(case for case in CASES if case.name == "expansion"), 160, 8).arrays


def rebalanced(parts: Parts = PLAIN, **options: Any) -> Outcome:
    request = ReassignmentRequest(Action.REBALANCE, tolerance=0.05, **options)
    return plan_rebalance(EXPANSION, request, parts)


@pytest.fixture(scope="module")
def whole() -> Outcome:
    return rebalanced(tolerances=TOLERANCES)


@pytest.fixture(scope="module")
def priced(whole: Outcome) -> dict[str, TargetPrice]:
    rows, load = whole.layout.rows.copy(), whole.layout.load.copy()
    prices = {price.resource: price for price in whole.prices()}
    assert (whole.layout.rows == rows).all(), "working prices out leaves the plan as it is"
    assert (whole.layout.load == load).all()
    return prices


def cost(outcome: Outcome) -> tuple[int, int]:
    rows, origin = outcome.layout.rows, outcome.layout.origin
    is_new = (rows[:, :, None] != origin[:, None, :]).all(axis=2) & (rows != NONE)
    return int((is_new.sum(axis=1) * outcome.layout.size).sum()), int(is_new.sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["replicas", "bytes_in"])
def test_a_target_costs_what_the_same_request_without_it_saves(
    whole: Outcome, priced: dict[str, TargetPrice], name: str
) -> None:
    without = rebalanced(tolerances=TOLERANCES | {name: None})
    saved = np.subtract(cost(whole), cost(without)).tolist()
    assert [priced[name].bytes_to_move, priced[name].replica_moves] == saved
    assert priced[name].method == "solved"


@pytest.mark.slow
def test_targets_of_leaders_cost_nothing_and_free_resources_have_no_price(
    priced: dict[str, TargetPrice], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [priced[name].method for name in ("leaders", "bytes_out")] == ["free", "free"]
    assert priced["leaders"].replica_moves == 0
    monkeypatch.setattr(target_costs, "SOLVED_ANEW", 0)
    assert {price.resource for price in rebalanced().prices()} == {"bytes", "bytes_in", "bytes_out"}


def test_the_one_target_of_a_plan_costs_all_of_it() -> None:
    made = plan(cluster([""] * 3, [(0,)] * 9), action="rebalance", dry_run=True)
    (price,) = made.summary.prices
    assert (price.bytes_to_move, price.replica_moves) == (600, 6)


@pytest.mark.parametrize(
    ("asked", "shown"), [({}, False), ({"dry_run": True}, True), ({"approval": True}, True)]
)
def test_prices_are_computed_where_a_person_is_asked(
    asked: dict[str, bool], *, shown: bool
) -> None:
    made = plan(cluster([""] * 3, [(0,)] * 9), action="rebalance", **asked)
    assert bool(made.summary.prices) is shown
    assert made.plan_hash == plan(cluster([""] * 3, [(0,)] * 9), action="rebalance").plan_hash


@pytest.mark.slow
def test_of_a_large_cluster_the_least_is_prices_that_a_target_costs(
    whole: Outcome, priced: dict[str, TargetPrice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_costs, "SOLVED_ANEW", 0)
    prices = {price.resource: price for price in whole.prices()}
    assert {prices[name].method for name in ("bytes", "replicas", "bytes_in")} == {"at_least"}
    assert 0 < prices["bytes"].bytes_to_move <= priced["bytes"].bytes_to_move
    alone = rebalanced(FAST, tolerances={"bytes_in": None, "bytes_out": None})
    (price,) = alone.prices()
    for prices_part, all_of_it in zip(
        (price.bytes_to_move, price.replica_moves), cost(alone), strict=True
    ):
        assert 0.8 * all_of_it <= prices_part <= all_of_it


def test_a_target_that_a_budget_cut_off_is_not_priced() -> None:
    made = plan(cluster([""] * 3, [(0,)] * 9), action="rebalance", budget_moves=2, dry_run=True)
    (price,) = made.summary.prices
    assert (price.replica_moves, price.method) == (2, "at_least")
