"""Expansion, exclusions, sizes of brokers, budgets, and clusters with half their racks named."""

from __future__ import annotations

from typing import Any

import pytest

from rehome.domain.plan.infeasible_text import obstacle_text
from rehome.errors import InvalidRequestError
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import both, infeasible, plan, problems


def test_an_expansion_fills_the_new_broker_and_moves_nothing_elsewhere() -> None:
    of = cluster([""] * 4, [(0,)] * 30 + [(1,)] * 20 + [(2,)] * 10)
    made = plan(of, action="expand", brokers=[3])
    assert {broker for move in made.moves for broker in move.adding} == {3}
    after = [load.size_bytes_after for load in made.summary.brokers]
    assert after[3] == 1500
    assert after[0] < 2000
    assert after[2] == 1000
    assert infeasible(made) == ()
    assert plan(of.after(made), action="expand", brokers=[3]).moves == ()


def test_an_expansion_needs_its_brokers() -> None:
    with pytest.raises(InvalidRequestError, match="expand needs brokers"):
        plan(cluster([""] * 2, [(0,)]), action="expand")


def test_excluded_topics_stay_and_excluded_brokers_get_nothing() -> None:
    of = both(
        cluster([""] * 3, [(0,)] * 10, topic="kept"), cluster([""] * 3, [(0,)] * 10, topic="free")
    )
    made = plan(of, action="rebalance", exclude_topics=["k*"], exclude_brokers=[2])
    assert {move.partition.topic for move in made.moves} == {"free"}
    assert {broker for move in made.moves for broker in move.adding} == {1}
    assert any("it is excluded" in obstacle_text(item) for item in infeasible(made))


def moved(of: Cluster, **params: Any) -> list[str]:
    return [str(move.partition) for move in plan(of, **params).moves]


@pytest.mark.parametrize(
    ("topics", "found"),
    [
        (["a:1"], ["a-1"]),
        (["a:1-2"], ["a-1", "a-2"]),
        (["?:2"], ["a-2", "b-2"]),
        (["re:a|bc"], ["a-0", "a-1", "a-2"]),
        (["a:0", "re:b"], ["a-0", "b-0", "b-1", "b-2"]),
    ],
)
def test_single_partitions_and_expressions_are_a_scope(topics: list[str], found: list[str]) -> None:
    of = both(*(cluster([""] * 3, [(0,)] * 3, topic=topic) for topic in "ab"))
    assert moved(of, action="drain", brokers=[0], topics=topics) == found
    raised = {"action": "set_replication_factor", "replication_factor": 2}
    left = [f"{topic}-{number}" for topic in "ab" for number in range(3)]
    assert moved(of, **raised, exclude_topics=topics) == [p for p in left if p not in found]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a:3", "'a:3' names partitions that there are not: a has 0 to 2."),
        ("a:1-7", "'a:1-7' names partitions that there are not: a has 0 to 2."),
        ("?:3", "No partition matches '?:3'."),
        ("b:0", "Unknown topic 'b'."),
        ("re:b", "No topic matches the pattern 're:b'."),
        ("__*", "Patterns do not reach internal topics, such as __offsets: give full names."),
        ("re:__.*", "Patterns do not reach internal topics, such as __offsets: give full names."),
    ],
)
def test_a_scope_that_there_is_not_is_refused_with_the_reason(text: str, problem: str) -> None:
    internal = cluster([""] * 3, [(0,)], topic="__offsets", internal=frozenset({"__offsets"}))
    of = both(cluster([""] * 3, [(0,)] * 3, topic="a"), internal)
    for name in ("topics", "exclude_topics"):
        assert problem in problems(of, action="rebalance", **{name: [text]})


def test_an_excluded_broker_gets_nothing_in_a_drain_either() -> None:
    made = plan(cluster([""] * 3, [(0,)] * 6), action="drain", brokers=[0], exclude_brokers=[1])
    assert {move.target for move in made.moves} == {(2,)}


def test_exclusions_that_do_not_exist_are_refused() -> None:
    of = cluster([""] * 2, [(0,)])
    assert "Unknown broker 9" in problems(of, action="rebalance", exclude_brokers=[9])
    assert "Unknown topic 'x'" in problems(of, action="rebalance", exclude_topics=["x"])


@pytest.mark.slow
def test_brokers_are_filled_in_proportion_to_the_sizes_that_are_asked_for() -> None:
    of = cluster([""] * 3, [(0,)] * 40)
    made = plan(of, action="rebalance", weights={"1": 2})
    assert [load.size_bytes_after for load in made.summary.brokers] == [1000, 2000, 1000]


def test_what_a_drained_broker_held_goes_in_proportion_to_the_sizes_that_are_asked_for() -> None:
    of = cluster([""] * 3, [(0,)] * 90)
    made = plan(of, action="drain", brokers=[0], weights={"1": 2})
    assert [load.bytes_in for load in made.summary.brokers] == [0, 6000, 3000]


@pytest.mark.parametrize(("weights", "least"), [({"1": 2}, 11_700), ({}, 7_400)])
def test_a_broker_is_as_full_as_the_size_that_is_asked_for_when_replicas_are_added(
    weights: dict[str, int], least: int
) -> None:
    of = cluster([""] * 4, [(0,)] * 30 + [(1,)] * 60 + [(2,)] * 30 + [(3,)] * 30)
    params = {"action": "set_replication_factor", "replication_factor": 2, "weights": weights}
    held = [load.size_bytes_after for load in plan(of, **params).summary.brokers]
    assert least <= held[1] <= least + 600


def test_racks_are_repaired_in_proportion_to_the_sizes_that_are_asked_for() -> None:
    of = cluster(["/a", "/a", "/b", "/b"], [(0, 1)] * 60)
    made = plan(of, action="repair_racks", weights={"2": 2})
    assert [load.bytes_in for load in made.summary.brokers] == [0, 0, 4000, 2000]


@pytest.mark.parametrize("budget", [{"budget_moves": 5}, {"budget_bytes": 599}])
def test_a_budget_buys_the_moves_that_help_most(budget: dict[str, int]) -> None:
    of = cluster([""] * 4, [(0,)] * 20 + [(1,)] * 12 + [(2,)] * 8 + [(3,)] * 8)
    made = plan(of, action="rebalance", **budget)
    assert made.summary.replica_moves == 5
    assert all(move.removing == (0,) for move in made.moves)
    assert any("movement budget" in obstacle_text(item) for item in infeasible(made))
    assert made.summary.lower_bound_bytes <= made.summary.bytes_to_move


@pytest.mark.slow
def test_a_budget_that_is_large_enough_changes_nothing() -> None:
    of = cluster([""] * 4, [(0,)] * 20 + [(1,)] * 12)
    whole = plan(of, action="rebalance")
    assert plan(of, action="rebalance", budget_bytes=10**9).moves == whole.moves


@pytest.mark.parametrize("ignored", [False, True])
def test_only_some_brokers_may_have_a_rack(ignored: bool) -> None:
    of = cluster(["/a", "/b", ""], [(0,)] * 9)
    made = plan(of, action="rebalance", ignore_racks=ignored)
    assert [load.size_bytes_after for load in made.summary.brokers] == [300] * 3
    assert made.summary.rack_violations_after == 0


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"tolerances": {"disk": 0.1}}, "names 'disk'"),
        ({"tolerances": {"replicas": 2}}, "is not a fraction"),
        ({"weights": {"1": 0}}, "is no weight"),
        ({"weights": {"one": 1}}, "names broker 'one'"),
        ({"budget_moves": 0}, "is less than 1"),
    ],
)
def test_limits_that_make_no_sense_are_refused(params: dict[str, Any], problem: str) -> None:
    assert problem in problems(cluster([""] * 2, [(0,)]), action="rebalance", **params)
