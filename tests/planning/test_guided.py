"""Plans by prices: what a linear program over brokers says, and what becomes of it."""

from __future__ import annotations

import numpy as np

from include.planning import guided as by_prices
from include.planning.balance import rebalance
from include.planning.guided import guided
from include.planning.program import Classes, Program
from include.planning.search import Search
from include.planning.shedder import BYTES, RATE
from tests.planning.posed import posed_case

NOBODY = np.zeros(0, np.int64)
ANY = np.inf


def nothing_small(brokers: int) -> Classes:
    return Classes.of(np.zeros((3, 0)), NOBODY, brokers, (2, 2))


def test_bytes_go_in_cold_replicas_where_there_is_no_room_for_their_traffic():
    hot, cold = [0.2, 0.01, 0.2], [0.2, 0.01, 0.01]
    weight = np.array([hot, cold]).T
    load = np.array([[1.2, 0.8], [1.0, 1.0], [1.0, 1.0]])
    low = np.array([[1.0, 1.0], [0.0, 0.0], [0.9, 0.9]])
    high = np.array([[1.0, 1.0], [ANY, ANY], [1.1, 1.05]])
    program = Program(load, low, high, np.array([0, 1]), overhead=0.0)
    owner = np.array([0, 0])
    solved = program.solve(weight, owner, nothing_small(2), np.zeros((3, 2)))
    assert np.allclose(solved.part, [[0, 0.0], [0, 1.0]])
    after = program.moved(weight[:, [1]], owner[[1]], np.array([1]))
    assert np.allclose(after.load[BYTES], 1)
    assert (after.load[RATE] <= high[RATE]).all()


def test_classes_move_as_amounts_and_arrive_as_whole_classes():
    weight, owner = np.full((3, 10), 0.1), np.repeat([0], 10)
    program = Program(
        np.array([[1.0, 0.0]] * 3),
        np.full((3, 2), 0.4),
        np.full((3, 2), 0.6),
        np.array([0, 1]),
        overhead=0.0,
    )
    classes = Classes.of(weight, owner, 2, (1, 1))
    solved = program.solve(np.zeros((3, 0)), NOBODY, classes, np.zeros((3, 2)))
    assert np.allclose(solved.leaves, [[0.4, 0]])
    assert solved.prices[BYTES, 0] > solved.prices[BYTES, 1]
    leaving = Classes.of(weight[:, :4], owner[:4], 2, (1, 1))
    seats = program.lifted(leaving.mass.sum(axis=1)).seats(leaving)
    assert np.allclose(seats, [[0, 4]])


def test_a_plan_by_prices_comes_close_to_the_boxes():
    problem, _ = posed_case("stress", 4_000, 24)
    before = Search(problem)
    far = before.excess(slice(None), before.load).sum()
    search = guided(problem)
    left = search.excess(slice(None), search.load).sum()
    print(f"outside of boxes: {far:.3f} shares before, {left:.3f} after")
    assert left < 0.05 * far
    assert not problem.tree.violations(problem.layout.rows).any()


def test_blocks_hold_every_broker_once_and_as_much_to_give_as_to_take(monkeypatch):
    monkeypatch.setattr(by_prices, "BLOCK", 10)
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


def test_classes_are_finest_where_replicas_are_coldest_and_hottest():
    rate = np.arange(1.0, 1201.0)
    weight = np.stack([np.ones(1200), np.ones(1200), rate])
    classes = Classes.of(weight, np.zeros(1200, np.int64), 1, (1, 12))
    size = classes.count.sum(axis=1)
    assert size.sum() == 1200
    assert (np.diff(size[:6]) > 0).all()
    assert (np.diff(size[6:]) < 0).all()
    assert max(size[0], size[-1]) < 0.3 * 1200 / 12


def test_the_same_problem_gets_the_same_plan_by_prices():
    first, capacity = posed_case("stress", 2_000)
    second, _ = posed_case("stress", 2_000)
    for problem in (first, second):
        rebalance(problem, capacity)
    assert (first.layout.rows == second.layout.rows).all()
    assert len(first.layout.changed())
