"""Plans by prices: what a linear program over brokers says, and what becomes of it."""

from __future__ import annotations

import numpy as np
import pytest

from include.planning import guided as by_prices
from include.planning.balance import rebalance
from include.planning.guided import guided
from include.planning.program import Classes, Program
from include.planning.search import Search
from include.planning.shedder import BYTES, RATE
from tests.planning.test_narrow import posed

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


@pytest.mark.parametrize(("block", "part"), [(40, 0.05), (7, 0.15)])
def test_a_plan_by_prices_comes_close_to_the_boxes_in_one_block_or_several(
    monkeypatch, block, part
):
    monkeypatch.setattr(by_prices, "BLOCK", block)
    problem, _ = posed("stress", 4_000, 24)
    before = Search(problem)
    far = before.excess(slice(None), before.load).sum()
    search = guided(problem)
    left = search.excess(slice(None), search.load).sum()
    print(f"outside of boxes: {far:.3f} shares before, {left:.3f} after")
    assert left < part * far
    assert not problem.tree.violations(problem.layout.rows).any()


def test_the_same_problem_gets_the_same_plan_by_prices():
    first, capacity = posed("stress", 2_000)
    second, _ = posed("stress", 2_000)
    for problem in (first, second):
        rebalance(problem, capacity)
    assert (first.layout.rows == second.layout.rows).all()
    assert len(first.layout.changed())
