"""Fewer moves for nearly the same bytes: what is found, and what may not happen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.people.judged_plans import goal_of, planned
from benchmarks.people_clusters import cases
from benchmarks.small_clusters import small
from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.programs.fewest_moves import FEWEST_MOVES, move_fewest
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.search.state import Problem, Search
from tests.planning.clusters import cluster
from tests.planning.posed import PLAIN, posed, posed_with_headrooms

REQUEST = ReassignmentRequest(Action.REBALANCE, tolerance=0.05)
SIZES = [100, 100, 100, 100, 100, 400, 500, 600]


def problem_of(*, moved: tuple[int, ...], sizes: list[int] = SIZES) -> Problem:
    """Broker 0 holds partitions of 2,000 bytes, brokers 1 and 2 one each: of 1,000 and 1,500. Those
    that are named have moved to broker 1.
    """
    rows = [*([(0,)] * len(sizes)), (1,), (2,)]
    of = cluster([""] * 3, rows, [*sizes, 1_000, 1_500])
    problem = posed(ClusterArrays.from_snapshot(of.snapshot()), REQUEST)
    rows_after = problem.layout.rows.copy()
    rows_after[list(moved)] = 1
    problem.layout.lay_out(rows_after)
    return problem


def moved_in(problem: Problem) -> list[int]:
    return [int(partition) for partition in problem.layout.changed_partitions()]


def test_one_large_replica_moves_in_place_of_five() -> None:
    """Though no single one of them, and no two, can be left out."""
    problem = problem_of(moved=(0, 1, 2, 3, 4))
    assert Search(problem).outside() == 0
    move_fewest(problem, 500)
    assert moved_in(problem) == [6]
    assert Search(problem).outside() == 0


def test_a_program_that_is_too_large_is_not_begun() -> None:
    problem = problem_of(moved=(0, 1, 2, 3, 4))
    move_fewest(problem, 500, replace(FEWEST_MOVES, most_cells=10))
    assert moved_in(problem) == [0, 1, 2, 3, 4]


def test_no_more_bytes_are_copied_than_are_allowed() -> None:
    problem = problem_of(moved=(0, 1, 2, 3, 4), sizes=[96, 96, 96, 96, 96, 400, 520, 600])
    move_fewest(problem, 500)
    assert moved_in(problem) != [6]
    assert Search(problem).copied_bytes() <= 500


def test_a_partition_that_may_not_move_stays() -> None:
    problem = problem_of(moved=(0, 1, 2, 3, 4))
    problem.partitions[6] = False
    move_fewest(problem, 500)
    assert 6 not in moved_in(problem)
    assert len(moved_in(problem)) == 2  # of 100 and 400 bytes


def test_a_disk_without_space_takes_nothing_larger() -> None:
    problem = problem_of(moved=(0, 1, 2, 3, 4), sizes=[95, 95, 95, 95, 95, 400, 500, 600])
    headrooms = problem.layout.headrooms.copy()
    headrooms[1] = 480
    problem = posed_with_headrooms(problem, headrooms)
    move_fewest(problem, 510)
    assert 6 not in moved_in(problem)
    assert not len(problem.layout.overfull())


def test_where_bands_are_unmet_nothing_changes() -> None:
    problem = problem_of(moved=(0, 1))
    assert Search(problem).outside() > 0
    move_fewest(problem, 500)
    assert moved_in(problem) == [0, 1]


def test_what_has_to_leave_a_broker_does_not_return() -> None:
    problem = problem_of(moved=(0, 1, 2, 3, 4))
    problem.leaving[0] = True
    move_fewest(problem, 500)
    assert set(moved_in(problem)) >= {0, 1, 2, 3, 4}


@pytest.mark.parametrize("seed", range(2))
def test_rules_hold_and_the_same_plan_is_found_again(
    seed: int,
) -> None:
    of = small(seed)
    request = ReassignmentRequest(
        Action.REBALANCE, tolerance=0.05, tolerances={"bytes_in": 0.1}, weights=of.weights
    )
    problem = replace(posed(of.arrays, request), parts=PLAIN)
    rebalance(problem, np.ones(len(of.arrays.brokers.ids)))
    before, found = Search(problem), problem.layout.rows.copy()
    most = 1.02 * before.copied_bytes()
    again = []
    for _ in range(2):
        problem.layout.lay_out(found)
        move_fewest(problem, most)
        again.append(problem.layout.rows.copy())
    after = Search(problem)
    assert (again[0] == again[1]).all()
    assert after.outside() <= before.outside()
    assert after.uneven() <= before.uneven()
    assert after.copied_bytes() <= max(most, before.copied_bytes())
    assert len(after.copies()) <= len(before.copies())
    assert not problem.tree.violations(problem.layout.rows).any()
    assert (problem.layout.incoming <= problem.layout.headroom).all()


@pytest.mark.parametrize(
    ("name", "most"), [("nearly full", 5), pytest.param("giant 0.6", 22, marks=pytest.mark.slow)]
)
def test_a_plan_of_a_small_cluster_has_few_moves(name: str, most: int) -> None:
    """4 and 18 are the fewest within 1.02 times the fewest bytes, by an exact solver; the search
    alone makes 7 and 32.
    """
    case = next(case for case in cases() if case.name == name)
    rows, goal = planned(case).rows, goal_of(case)
    assert goal.copied(rows)[1] <= most
    assert not goal.broken(rows)
    assert goal.excess(rows).max() == 0


def test_a_plan_near_the_bound_of_moves_needs_no_integer_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rehome.planning.programs.fewest_moves.milp", None)
    problem = problem_of(moved=(6,))
    move_fewest(problem, 510, replace(FEWEST_MOVES, gap=0.5))
    assert moved_in(problem) == [6]
