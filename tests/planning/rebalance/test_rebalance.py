"""What a rebalance does on clusters small enough to check by eye."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.clusters import CASES, build
from benchmarks.planning.plan import request_of
from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.domain.request.parse_request import parse_request
from rehome.domain.resources import Resource
from rehome.planning.model.arrays import broker_sums
from rehome.planning.rebalance.rebalance import plan_rebalance
from tests.planning.clusters import cluster
from tests.planning.planned import ROWS, THREE_RACKS, T, both, infeasible, plan, problems


@pytest.mark.slow
def test_a_new_broker_is_filled_with_the_fewest_bytes() -> None:
    of = cluster([""] * 4, [(broker,) for broker in (0, 1, 2)] * 20)
    made = plan(of, action="rebalance")
    assert [load.size_bytes_after for load in made.summary.brokers] == [1500] * 4
    assert made.summary.bytes_to_move == 1500
    assert 1450 <= made.summary.lower_bound_bytes <= 1500
    assert made.summary.infeasible == ()


def test_a_balanced_cluster_is_left_alone() -> None:
    made = plan(cluster(THREE_RACKS, ROWS), action="rebalance")
    assert made.moves == ()
    assert made.summary.lower_bound_bytes == 0


@pytest.mark.slow
def test_brokers_are_filled_in_proportion_to_their_disks() -> None:
    disks = {0: (10_000, 9_000), 1: (20_000, 20_000), 2: (10_000, 10_000)}
    of = cluster([""] * 3, [(0,)] * 40, disks=disks)
    after = [load.size_bytes_after for load in plan(of, action="rebalance").summary.brokers]
    assert after == [1000, 2000, 1000]


def test_only_the_named_brokers_take_part() -> None:
    of = cluster([""] * 4, [(0,)] * 20 + [(3,)] * 4)
    made = plan(of, action="rebalance", brokers=[0, 1])
    after = [load.size_bytes_after for load in made.summary.brokers]
    assert after == [1000, 1000, 0, 400]


@pytest.mark.slow
def test_only_the_named_topics_move_and_patterns_do_not_reach_internal_ones() -> None:
    a = cluster([""] * 2, [(0,)] * 10, topic="apple")
    b = cluster([""] * 2, [(0,)] * 10, topic="pear")
    c = replace(cluster([""] * 2, [(0,)] * 10, topic="__pears"), internal=frozenset({"__pears"}))
    of = both(both(a, b), c)
    made = plan(of, action="rebalance", topics=["*pear*"])
    assert {move.partition.topic for move in made.moves} == {"pear"}
    made = plan(of, action="rebalance", topics=["__pears"])
    assert {move.partition.topic for move in made.moves} == {"__pears"}
    assert {move.partition.topic for move in plan(of, action="rebalance").moves} == {
        "apple",
        "pear",
    }


def test_a_partition_larger_than_a_brokers_share_is_named() -> None:
    made = plan(cluster([""] * 3, [(0,)] * 3, sizes=[10, 10, 100]), action="rebalance")
    assert any("t-2 (100 B) is larger than its share" in obstacle_text(i) for i in infeasible(made))


def test_a_rack_that_must_hold_more_than_its_fair_share_is_named() -> None:
    racks = ["/small"] + ["/large"] * 3
    of = cluster(racks, [(0, 1 + i % 3) for i in range(9)])
    made = plan(of, action="rebalance")
    assert made.moves == ()
    named = [item for item in infeasible(made) if subject_text(item.subject) == "rack /small"]
    assert [(item.wanted, item.nearest) for item in named] == [(450.0, 900.0)]
    assert "even spread over racks" in obstacle_text(named[0])


def test_replicas_out_of_scope_that_exceed_the_share_are_named() -> None:
    a, b = (cluster([""] * 2, [(0,)] * n, topic=name) for n, name in ((8, "a"), (2, "b")))
    made = plan(both(a, b), action="rebalance", topics=["b"])
    assert [move.target for move in made.moves] == [(1,), (1,)]
    assert any("may not move" in obstacle_text(item) for item in infeasible(made))


def test_partitions_in_flight_are_left_alone_and_named() -> None:
    of = cluster([""] * 2, [(0,)] * 10, adding=frozenset({(T[3], 0)}))
    made = plan(of, action="rebalance")
    assert T[3] not in made.by_partition
    assert any(subject_text(item.subject) == "t-3" for item in infeasible(made))


def test_a_rebalance_repairs_the_racks_of_what_it_moves_and_only_of_that() -> None:
    racks = ["/a", "/a", "/a", "/b", "/c"]
    made = plan(cluster(racks, [(0, 1, 2), (1,), (2,)], [300] * 3), action="rebalance")
    assert {racks[broker] for broker in made.by_partition[T[0]].target} == {"/a", "/b", "/c"}
    assert [load.size_bytes_after for load in made.summary.brokers] == [300] * 5
    assert plan(cluster(racks[:4], [(0, 1, 2), (3,)]), action="rebalance").moves == ()


def test_a_rebalance_keeps_replicas_apart_where_their_racks_are_free_to_change() -> None:
    made = plan(cluster(THREE_RACKS, [(0, 2)] * 9), action="rebalance", tolerance=0.1)
    assert [load.size_bytes_after for load in made.summary.brokers] == [300] * 6
    assert made.summary.rack_violations_after == 0


def test_a_rebalance_fills_a_disk_no_further_than_it_holds_and_names_it() -> None:
    of = cluster([""] * 2, [(0,)] * 20, disks={0: (10_000, 8_000), 1: (10_000, 350)})
    made = plan(of, action="rebalance")
    assert [load.size_bytes_after for load in made.summary.brokers] == [1700, 300]
    named = [
        obstacle_text(item) for item in infeasible(made) if subject_text(item.subject) == "broker 1"
    ]
    assert "the broker's disk does not hold its share" in named


def test_brokers_without_a_rack_are_one_more_rack() -> None:
    of = cluster(["/a", "/b", "", ""], [(0, 1), (1, 0)] * 6)
    after = of.after(plan(of, action="rebalance", tolerance=0.05)).replicas.values()
    assert {(2, 3), (3, 2)} & {tuple(row) for row in after} == set()
    assert any(2 in row or 3 in row for row in after)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"topics": ["nope"]}, "Unknown topic 'nope'."),
        ({"topics": ["x*"]}, "No topic matches the pattern 'x*'."),
        ({"brokers": [7]}, "Unknown broker 7."),
    ],
)
def test_a_rebalance_of_what_does_not_exist_is_refused(
    params: dict[str, Any], problem: str
) -> None:
    of = cluster(THREE_RACKS, ROWS)
    assert problem in problems(of, action="rebalance", **params)


def test_a_rebalance_leaves_replicas_of_a_dead_broker_where_they_are_and_names_it() -> None:
    """The snapshot's gate refuses a rebalance of all brokers then; one of some goes on."""
    of = cluster(THREE_RACKS, ROWS, dead=frozenset({5}))
    made = plan(of, action="rebalance")
    assert not [move for move in made.moves if 5 in (*move.current, *move.target)]
    (note,) = (
        n
        for n in made.summary.infeasible
        if subject_text(n.subject) == "offline replicas of broker 5"
    )
    assert obstacle_text(note).startswith("it is not live: their partitions are left alone")


@pytest.mark.slow
def test_within_the_budget_of_work_many_brokers_come_into_their_bands() -> None:
    """The budget goes by brokers, too: that of so many replicas is spent before all are inside."""
    free = dict.fromkeys(("bytes_in", "bytes_out", "leaders", "replicas"))
    arrays = build(next(case for case in CASES if case.name == "rates"), 15_000, 300).arrays
    bytes_alone = parse_request({"action": "rebalance", "tolerances": free})
    rows = plan_rebalance(arrays, bytes_alone).layout.rows.copy()
    outcome = plan_rebalance(replace(arrays, rows=rows), request_of("default"))
    assert not outcome.search_cut
    assert outcome.bands is not None
    weights = {Resource.BYTES: arrays.size_bytes, Resource.BYTES_IN: arrays.bytes_in}
    for resource, weight in weights.items():
        load = broker_sums(outcome.layout.rows, weight, 300)
        assert (load <= outcome.bands.high[resource] + 1).all()
        assert (load >= outcome.bands.low[resource] - 1).all()
