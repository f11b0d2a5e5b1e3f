"""Plans by prices: what a linear program over brokers says, and what becomes of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.clusters import CASES, build
from benchmarks.planning.plan import solved
from rehome.domain.array_types import Ints
from rehome.domain.request.request import Effort
from rehome.planning.effort.optional_parts import FAST, THOROUGH, parts_of
from rehome.planning.effort.rebalance_options import REBALANCE
from rehome.planning.programs import lp_rounding as by_prices
from rehome.planning.programs.flow_lp import FLOW, Classes, Program
from rehome.planning.programs.lp_rounding import PricedSearch, is_free, round_lp
from rehome.planning.rebalance import solver
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.lower_bounds import rebalance_bound
from rehome.planning.search.broker_shed import BYTES_ROW, RATE_ROW
from rehome.planning.search.state import Search
from tests.planning.posed import posed_case, posed_with_headrooms

LITTLE = 1.02
NO_OWNERS = np.zeros(0, np.int64)
ANY = np.inf


def nothing_small(brokers: int) -> Classes:
    return Classes.of(np.zeros((3, 0)), NO_OWNERS, brokers, (2, 2))


def test_bytes_go_in_cold_replicas_where_there_is_no_room_for_their_traffic() -> None:
    hot, cold = [0.2, 0.01, 0.2], [0.2, 0.01, 0.01]
    weight = np.array([hot, cold]).T
    load = np.array([[1.2, 0.8], [1.0, 1.0], [1.0, 1.0]])
    low = np.array([[1.0, 1.0], [0.0, 0.0], [0.9, 0.9]])
    high = np.array([[1.0, 1.0], [ANY, ANY], [1.1, 1.05]])
    program = Program(load, low, high, np.array([0, 1]), overhead=0.0)
    owner = np.array([0, 0])
    solved = program.solve(weight, owner, nothing_small(2), np.zeros((3, 2)))
    assert np.allclose(solved.part, [[0, 0.0], [0, 1.0]])
    after = program.with_moves(weight[:, [1]], owner[[1]], np.array([1]))
    assert np.allclose(after.load[BYTES_ROW], 1)
    assert (after.load[RATE_ROW] <= high[RATE_ROW]).all()


def test_a_program_of_whole_replicas_finds_the_cheapest_way_to_place_them() -> None:
    weight = np.random.default_rng(6).uniform(0.1, 0.6, (3, 6))
    owner, brokers = np.array([0, 0, 0, 0, 1, 1]), range(3)
    load = np.stack([np.bincount(owner, of, len(brokers)) for of in weight]).astype(float)
    share = np.repeat(load.mean(axis=1, keepdims=True), len(brokers), axis=1)
    program = Program(load, 0.7 * share, 1.3 * share, np.array(brokers), overhead=0.01)

    def cost(target: Ints) -> float:
        away = target != owner
        after = program.with_moves(weight[:, away], owner[away], target[away]).load
        missed = np.maximum(after - program.high, 0) + np.maximum(program.low - after, 0)
        return float((weight[BYTES_ROW] + 0.01)[away].sum() + FLOW.missed * missed.sum())

    ways = [np.array(way) for way in itertools.product(brokers, repeat=len(owner))]
    prices = np.zeros((3, len(brokers)))
    divided = program.solve(weight, owner, nothing_small(len(brokers)), prices).part
    assert ((divided > 0.01) & (divided < 0.99)).any()
    part = program.whole(weight, owner, nothing_small(len(brokers)), prices)
    assert part is not None
    found = np.where(part.any(axis=1), part.argmax(axis=1), owner)
    assert set(part.ravel().tolist()) <= {0.0, 1.0}
    assert cost(found) <= min(map(cost, ways)) * (1 + FLOW.gap)


@pytest.mark.slow
def test_a_few_large_replicas_hardly_make_a_plan_dearer_than_bytes_alone_would() -> None:
    problem, capacity = posed_case("skew", 4_000, 12)
    layout = problem.layout
    before = layout.load.copy()
    rebalance(problem, capacity)
    bound = rebalance_bound(layout, problem.tree, problem.targets, problem.partitions, before)
    ratio = layout.incoming.sum() / bound
    print(f"copied {ratio:.4f} times the bound of bytes alone")
    assert ratio < LITTLE


@pytest.mark.slow
def test_a_fast_plan_is_made_by_programs_only_where_they_promise_far_fewer_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def watched(search: PricedSearch, costs: tuple[float, float]) -> bool:
        made = round_lp(search, costs)
        asked.append((search.problem.partitions.size, search.problem.parts, made))
        return made

    monkeypatch.setattr(by_prices, "round_lp", watched)
    for name, partitions in (("skew", 4_000), ("stress", 2_000)):
        for effort in Effort:
            problem, capacity = posed_case(name, partitions, 24)
            rebalance(replace(problem, parts=parts_of(effort)), capacity)
    assert asked == [
        (4_000, FAST, False),
        (4_000, THOROUGH, True),
        (2_000, FAST, True),
        (2_000, THOROUGH, True),
    ]
    asked.clear()
    further = {"potential_bytes_out": 0.05}
    problem, capacity = posed_case("stress", 2_000, 24, tolerances=further)
    rebalance(problem, capacity)
    assert problem.layout.incoming.any()
    assert not asked, "programs know no further resources"


@pytest.mark.slow
def test_a_large_plan_with_bands_for_topics_is_made_by_programs_only_if_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def counted(search: PricedSearch, _: object = None) -> bool:
        asked.append((search.problem.parts, search.strict))
        return False

    monkeypatch.setattr(by_prices, "round_lp", counted)
    monkeypatch.setattr(solver, "REBALANCE", replace(REBALANCE, middle=5_000, large=5_999))
    large_programs = replace(FAST, large_programs=True)
    for parts in (FAST, large_programs, THOROUGH):
        problem, capacity = posed_case("stress", 2_000, 24, tolerances={"topic_spread": 0.1})
        assert (problem.spread is not None, problem.layout.rows.size) == (True, 6_000)
        rebalance(replace(problem, parts=parts), capacity)
    assert asked == [(large_programs, False), (THOROUGH, False)], "topics are repaired afterwards"
    assert (FAST.large_programs, THOROUGH.large_programs) == (False, True)


@pytest.mark.slow
@pytest.mark.parametrize(("partitions", "brokers"), [(10_000, 300), (3_000, 160)])
def test_where_resources_conflict_many_brokers_come_into_their_bands_for_fewer_bytes(
    partitions: int, brokers: int
) -> None:
    """Within the budget of work of a fast plan, of which programs leave the local search enough."""
    instance = build(next(case for case in CASES if case.name == "stress"), partitions, brokers)
    by_search, made = (
        solved(instance, "strict", replace(FAST, programs_from=programs_from)).problem
        for programs_from in (np.inf, FAST.programs_from)
    )
    assert Search(made).outside() == 0.0
    assert Search(made).copied_bytes() < 0.95 * Search(by_search).copied_bytes()


def test_plans_by_prices_are_for_domains_in_which_racks_leave_replicas_free() -> None:
    assert is_free(Search(posed_case("skew", 3_000, 24)[0]))
    assert not is_free(Search(posed_case("rf2", 3_000, 24)[0]))


def test_classes_move_as_amounts_and_arrive_as_whole_classes() -> None:
    weight, owner = np.full((3, 10), 0.1), np.repeat([0], 10)
    program = Program(
        np.array([[1.0, 0.0]] * 3),
        np.full((3, 2), 0.4),
        np.full((3, 2), 0.6),
        np.array([0, 1]),
        overhead=0.0,
    )
    classes = Classes.of(weight, owner, 2, (1, 1))
    solved = program.solve(np.zeros((3, 0)), NO_OWNERS, classes, np.zeros((3, 2)))
    assert np.allclose(solved.leaves, [[0.4, 0]])
    assert solved.prices[BYTES_ROW, 0] > solved.prices[BYTES_ROW, 1]
    leaving = Classes.of(weight[:, :4], owner[:4], 2, (1, 1))
    arrivals = program.without_load(leaving.mass.sum(axis=1)).arrivals(leaving)
    assert np.allclose(arrivals, [[0, 4]])


@pytest.mark.slow
def test_a_plan_by_prices_comes_close_to_the_bands_and_is_the_same_every_time() -> None:
    problem, _ = posed_case("stress", 2_000, 24)
    again, _ = posed_case("stress", 2_000, 24)
    search = PricedSearch(problem)
    far = search.outside()
    assert round_lp(search)
    left = search.outside()
    print(f"outside of bands: {far:.3f} shares before, {left:.3f} after")
    assert left < 0.05 * far
    assert round_lp(PricedSearch(again))
    assert (again.layout.rows == problem.layout.rows).all()
    assert not problem.tree.violations(problem.layout.rows).any()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["stress", "rf2"])
def test_moves_made_at_once_are_those_that_are_made_one_after_the_other(case: str) -> None:
    problem, _ = posed_case(case, 2_000, 24)
    on_disks = posed_with_headrooms(posed_case(case, 2_000, 24)[0], np.full((24, 1), 10**15))
    for each in (problem, on_disks):
        assert round_lp(PricedSearch(replace(each, parts=FAST)))
    assert (on_disks.layout.rows == problem.layout.rows).all()
    assert len(problem.layout.changed_partitions()) > 50


def test_blocks_hold_every_broker_once_and_as_much_to_give_as_to_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_prices, "LP_ROUNDING", replace(by_prices.LP_ROUNDING, block=10))
    problem, _ = posed_case("stress", 5_000, 60)
    search = Search(problem)
    found = by_prices.blocks(search)
    assert len(found) == 6
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(60))
    surplus = search.load - search.share
    worst = max(
        (abs(surplus[:, block].sum(axis=1)) / search.share[:, block].sum(axis=1)).max()
        for block in found
    )
    print(f"furthest from even: {worst:.3f} of its share")
    assert worst < 0.04


def test_classes_are_finest_where_replicas_are_coldest_and_hottest() -> None:
    rate = np.arange(1.0, 1201.0)
    weight = np.stack([np.ones(1200), np.ones(1200), rate])
    classes = Classes.of(weight, np.zeros(1200, np.int64), 1, (1, 12))
    size = classes.count.sum(axis=1)
    assert size.sum() == 1200
    assert (np.diff(size[:6]) > 0).all()
    assert (np.diff(size[6:]) < 0).all()
    assert max(size[0], size[-1]) < 0.3 * 1200 / 12


@pytest.mark.parametrize(("name", "begun"), [("expansion", 0), ("stress", 1)])
def test_uneven_topics_alone_are_no_reason_for_programs(
    monkeypatch: pytest.MonkeyPatch, name: str, begun: int
) -> None:
    calls: list[float] = []

    def counted(search: PricedSearch, costs: tuple[float, float]) -> bool:
        calls.append(costs[0])
        return False

    monkeypatch.setattr(by_prices, "round_lp", counted)
    instance = build(next(case for case in CASES if case.name == name), 7_000, 40)
    solved(instance, "strict, topics")
    assert len(calls) == begun
