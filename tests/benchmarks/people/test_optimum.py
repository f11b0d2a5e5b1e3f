"""The best plans of people's clusters, against brute force on a tiny one."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.people.bench import OPTIMA, has_optimum, row
from benchmarks.people.judged_plans import goal_of, planned
from benchmarks.people.optimum import Goal, Optimum, optimum
from benchmarks.people_clusters import People, cases

TINY = People("tiny", 3, topics=(3, 2), replicas=2, skew=1.0, params={"tolerance": 0.1})


def by_hand(goal: Goal) -> list[tuple[float, int, float]]:
    """Bytes, moves and excess of all plans that break no rule."""
    sets = list(combinations(range(3), 2))
    found = []
    for rows in product(sets, repeat=len(goal.rows)):
        as_rows = np.array(rows, np.int32)
        if not goal.broken(as_rows):
            found.append((*goal.copied(as_rows), float(goal.excess(as_rows).sum())))
    return found


def test_the_best_plan_is_that_of_brute_force() -> None:
    goal = goal_of(TINY)
    plans = by_hand(goal)
    least = min(excess for _, _, excess in plans)
    close = [(copied, moves) for copied, moves, excess in plans if excess <= least + 1e-9]
    fewest = min(copied for copied, _ in close)
    moves = min(moves for copied, moves in close if copied <= 1.02 * fewest)
    found = optimum(goal, 10.0, reached=max(excess for _, _, excess in plans))
    assert found.excess == pytest.approx(least, abs=1e-5)
    assert found.bytes == pytest.approx(fewest, rel=0.002)
    assert found.moves == moves


def test_broken_rules_are_named() -> None:
    goal = goal_of(replace(TINY, brokers=0, racks=(2, 1), topics=(6, 6)))
    assert goal.broken(goal.rows) == []
    assert goal.broken(np.tile(np.array([[0, 1]], np.int32), (12, 1)))[0] == "racks"
    one = goal.rows.copy()
    one[0, 1] = -1
    assert "replication factor" in goal.broken(one)


def test_a_row_compares_with_the_best_only_where_that_is_close_to_its_bound() -> None:
    made = planned(TINY)
    good = Optimum(0.0, 0.0, 10**9, 10**9, 1, 1.0, 0.1)
    assert row(made, good)["fewest_moves"] in (1, None)
    poor = replace(good, bytes=10**15)
    assert row(made, poor)["bytes_over"] is None


@pytest.mark.slow
def test_committed_optima_are_those_of_the_cases() -> None:

    names = {one["name"] for one in json.loads(OPTIMA.read_text())}
    assert names == {case.name for case in cases() if has_optimum(case)}
