"""A minimum of leaders per broker: by the order of replicas first, by copies where that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible import Obstacle, SubjectKind
from rehome.domain.plan.infeasible_text import infeasible_text
from rehome.domain.plan.plan import Plan
from rehome.planning.leadership.copy_choice import cheapest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from tests.planning.clusters import cluster
from tests.planning.planned import both, infeasible, plan, problems

Row = tuple[int, ...]
LOOSE = {"bytes_in": None, "bytes_out": None, "topic_spread": None}


def rows_after(rows: Sequence[Row], made: Plan, topic: str = "t") -> list[Row]:
    """Replicas of each partition once the plan is carried out."""
    moved = {m.partition.partition: m.target for m in made.moves if m.partition.topic == topic}
    return [moved.get(number, row) for number, row in enumerate(rows)]


def led(rows: list[Row]) -> Counter[int]:
    return Counter(row[0] for row in rows)


def test_leaders_change_along_a_path_and_nothing_is_copied() -> None:
    rows = [(0, 1), (0, 1), (1, 2)]
    made = plan(cluster([""] * 3, rows), action="balance_leaders", min_leaders={"t": 1})
    assert led(rows_after(rows, made)) == {0: 1, 1: 1, 2: 1}
    assert made.summary.bytes_to_move == 0
    assert made.summary.min_leaders is not None
    assert made.summary.min_leaders.lacking_before == 1
    assert made.summary.min_leaders.lacking_after == 0


def test_balanced_in_all_but_the_topic_is_not_enough() -> None:
    a, b = [(0, 1), (0, 1), (0, 1)], [(1, 0), (1, 0), (1, 0)]
    of = both(cluster([""] * 2, a, topic="a"), cluster([""] * 2, b, topic="b"))
    assert plan(of, action="balance_leaders").moves == ()
    made = plan(of, action="balance_leaders", min_leaders={"?": 1})
    for topic, rows in (("a", a), ("b", b)):
        assert min(led(rows_after(rows, made, topic))[broker] for broker in (0, 1)) >= 1


def test_a_replica_is_copied_only_where_no_order_does_and_the_smallest() -> None:
    rows = [(0,), (0,), (1,), (1,), (2,), (2,)]
    of = cluster([""] * 3, [(0,), (0,), (1,)], sizes=[10, 30, 30], topic="t")
    rest = cluster([""] * 3, rows, topic="u")
    of = both(of, rest)
    tolerances = {"tolerances": LOOSE, "tolerance": 0.9}
    assert plan(of, action="rebalance", **tolerances).summary.bytes_to_move == 0
    made = plan(of, action="rebalance", min_leaders={"t": 1}, approval=True, **tolerances)
    assert led(rows_after([(0,), (0,), (1,)], made)) == {0: 1, 1: 1, 2: 1}
    assert made.summary.bytes_to_move == 10
    assert made.summary.min_leaders is not None
    assert made.summary.min_leaders.replicas_copied == 1
    assert "min_leaders" in why_text(made.moves[0])
    price = {price.resource: price for price in made.summary.prices}["min_leaders"]
    assert (price.bytes_to_move, price.replica_moves) == (10, 1)
    spent = plan(of, action="rebalance", min_leaders={"t": 1}, budget_bytes=9, **tolerances)
    assert spent.summary.bytes_to_move == 0
    assert any(i.subject.kind is SubjectKind.MIN_LEADERS for i in infeasible(spent))


def test_of_many_copies_the_best_that_the_spread_rule_allows_is_made() -> None:
    """More than are checked at once; the rule allows only one of the last."""
    count, target, allowed = 200, 2, (150, 1)
    arrays = ClusterArrays.from_snapshot(
        cluster([""] * 3, [(0, 1)] * count, sizes=list(range(1, count + 1))).snapshot()
    )
    layout = Layout(arrays)

    def violations(partitions: np.ndarray, rows: np.ndarray) -> np.ndarray:
        fine = (partitions == allowed[0]) & (rows[:, allowed[1]] == target)
        broken: np.ndarray = ((rows == target).any(axis=1) & ~fine).astype(int)
        return broken

    weights, band = arrays.size_bytes[None, :].astype(float), np.full((1, 3), np.inf)
    left = np.array([1e9, 10.0])
    takes = np.ones(3, bool)
    choose = cheapest(layout, violations, takes, takes, weights, (-band, band), left)
    assert choose(np.arange(count), target) == allowed
    assert left.tolist() == [1e9 - 151, 9]
    assert choose(np.arange(100), target) is None


def test_what_cannot_be_is_named() -> None:
    of = cluster([""] * 3, [(0,), (1,)])
    made = plan(of, action="balance_leaders", min_leaders={"t": 1})
    (note,) = infeasible(made)
    assert note.obstacle is Obstacle.TOO_FEW_PARTITIONS
    assert infeasible_text(note).startswith("topic t: min_leaders: the topic has too few")
    of = cluster([""] * 3, [(0,), (1,), (1,)])
    (note,) = infeasible(plan(of, action="balance_leaders", min_leaders={"t": 1}))
    assert (note.obstacle, note.subject.broker) == (Obstacle.NO_LEADER_CHANGE, 2)
    assert "min_leaders" in problems(of, action="drain", brokers=[0], min_leaders={"t": 1})
    assert "nothing*" in problems(of, action="balance_leaders", min_leaders={"nothing*": 1})


def test_leaders_alone_are_spread_and_nothing_is_copied() -> None:
    rows = [(0, 1), (0, 1), (0, 1), (0, 1), (2, 3), (2, 3), (2, 3), (2, 3)]
    of = cluster([""] * 4, rows)
    tolerances = {"tolerances": LOOSE | {"topic_spread": 0}, "tolerance": 0.9}
    made = plan(of, action="rebalance", topic_spread_of="leaders", **tolerances)
    assert made.summary.bytes_to_move == 0
    assert max(led(rows_after(rows, made)).values()) <= 3
    assert min(led(rows_after(rows, made)).get(b, 0) for b in range(4)) >= 1
    assert made.summary.topics is not None
    assert made.summary.topics.outside_after == 0


brokers_of = st.integers(3, 5)


@st.composite
def posed(draw: st.DrawFn) -> tuple[int, list[Row], int]:
    brokers = draw(brokers_of)
    width = draw(st.integers(1, 2))
    row = st.permutations(range(brokers)).map(lambda order: tuple(order[:width]))
    return (
        brokers,
        draw(st.lists(row, min_size=brokers, max_size=brokers + 3)),
        draw(st.integers(1, 3)),
    )


def reachable(brokers: int, rows: list[Row], least: int) -> int:
    """The fewest leaders that brokers lack under any order of the replicas, by a solver."""
    pairs = [(p, b) for p, row in enumerate(rows) for b in row]
    count = len(pairs)
    cost = np.concatenate([np.zeros(count), np.ones(brokers)])
    once = np.array([[p == q for q, _ in pairs] + [0] * brokers for p in range(len(rows))])
    enough = np.array(
        [[b == a for _, a in pairs] + [b == a for a in range(brokers)] for b in range(brokers)]
    )
    found = milp(
        cost,
        constraints=[LinearConstraint(once, 1, 1), LinearConstraint(enough, least, np.inf)],
        bounds=Bounds(0, np.concatenate([np.ones(count), np.full(brokers, np.inf)])),
        integrality=np.ones(len(cost)),
    )
    return round(float(found.fun))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(posed())
def test_no_order_of_replicas_does_better(case: tuple[int, list[Row], int]) -> None:
    brokers, rows, asked = case
    made = plan(cluster([""] * brokers, rows), action="balance_leaders", min_leaders={"t": asked})
    after = rows_after(rows, made)
    assert [sorted(row) for row in after] == [sorted(row) for row in rows]
    least = min(asked, len(rows) // brokers)
    lacks = {b: max(least - led(after)[b], 0) for b in range(brokers)}
    assert sum(lacks.values()) == reachable(brokers, rows, least)
    named = {
        i.subject.broker
        for i in infeasible(made)
        if i.subject.kind is SubjectKind.MIN_LEADERS and i.subject.broker is not None
    }
    assert named == {b for b, lack in lacks.items() if lack}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(posed())
def test_a_rebalance_reaches_every_minimum_by_copies(
    case: tuple[int, list[Row], int],
) -> None:
    brokers, rows, asked = case
    made = plan(
        cluster([""] * brokers, rows),
        action="rebalance",
        min_leaders={"t": asked},
        tolerance=0.9,
        tolerances=LOOSE,
    )
    after = rows_after(rows, made)
    assert all(len(set(row)) == len(row) == len(rows[0]) for row in after)
    least = min(asked, len(rows) // brokers)
    assert all(led(after)[broker] >= least for broker in range(brokers))
    copies = sum(len(set(new) - set(old)) for new, old in zip(after, rows, strict=True))
    assert made.summary.replica_moves == copies


def test_planning_again_changes_nothing() -> None:
    rows = [(0, 1), (0, 1), (0, 1), (2, 1), (3, 0), (3, 2)]
    of = cluster(["/a", "/a", "/b", "/b"], rows)
    made = plan(of, action="rebalance", min_leaders={"t": 1})
    again = replace(of, replicas=dict(zip(of.replicas, rows_after(rows, made), strict=True)))
    assert plan(again, action="rebalance", min_leaders={"t": 1}).moves == ()


@pytest.mark.parametrize("wrong", [{"t": 0}, {"t": "x"}, {"": 1}])
def test_a_minimum_is_a_whole_number(wrong: dict[str, Any]) -> None:
    assert "min_leaders" in problems(
        cluster([""] * 2, [(0,)]), action="rebalance", min_leaders=wrong
    )
