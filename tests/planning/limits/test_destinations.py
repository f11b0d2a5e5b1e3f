"""Only some brokers get new replicas, against a checker that knows nothing of the planner."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible import Obstacle
from rehome.errors import InvalidRequestError
from tests.examples import property_of
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import both, infeasible, plan, problems

RACKS = ["/a", "/b", "/c"] * 2
SHOP = both(
    cluster(RACKS, [(0, 1), (1, 2), (2, 3), (3, 0)] * 3, 1_000, topic="orders"),
    cluster(RACKS, [(0, 1), (1, 2), (2, 3), (3, 0)] * 2, 1_000, topic="audit"),
)
"""Nothing lies on brokers 4 and 5."""


def new_replicas(before: Cluster, after: Cluster) -> set[int]:
    """Brokers that hold a partition after a plan, and did not before."""
    rows = before.replicas
    return {b for p, row in after.replicas.items() for b in row if b not in rows[p]}


def red(*brokers: int, topic: str = "orders", exclusive: bool = False) -> list[dict[str, object]]:
    return [{"name": "red", "topics": [topic], "brokers": brokers, "exclusive": exclusive}]


def test_a_rebalance_brings_its_topics_to_the_destinations_alone_and_evenly() -> None:
    made = plan(SHOP, action="rebalance", topics=["orders"], destinations=[4, 5])
    after = SHOP.after(made).replicas
    orders = [row for p, row in after.items() if p.topic == "orders"]
    assert Counter(broker for row in orders for broker in row) == {4: 12, 5: 12}
    assert Counter(row[0] for row in orders) == {4: 6, 5: 6}
    assert all(after[p] == row for p, row in SHOP.replicas.items() if p.topic == "audit")
    assert "is no destination of this rebalance" in why_text(made.moves[0])
    assert infeasible(made) == ()


def test_racks_are_those_of_the_destinations() -> None:
    """Brokers 1 and 4 are both in rack /b: no rack is left out, for no other may hold it."""
    after = SHOP.after(plan(SHOP, action="rebalance", topics=["orders"], destinations=[1, 4]))
    assert {frozenset(row) for p, row in after.replicas.items() if p.topic == "orders"} == {
        frozenset({1, 4})
    }


def test_what_has_no_reason_to_move_stays_where_it_is() -> None:
    made = plan(SHOP, action="drain", brokers=[0], destinations=[4, 5])
    after = SHOP.after(made)
    assert {4} <= new_replicas(SHOP, after) <= {4, 5}
    for move in made.moves:
        assert [new for old, new in zip(move.current, move.target, strict=True) if old == new] == [
            broker for broker in move.current if broker != 0
        ]


def test_more_replicas_are_put_on_destinations() -> None:
    asked = {"action": "set_replication_factor", "replication_factor": 3, "destinations": [4, 5]}
    made = plan(SHOP, **asked, ignore_racks=True)
    assert new_replicas(SHOP, SHOP.after(made)) == {4, 5}
    assert "orders-1 would be spread worse over the racks than it is" in problems(SHOP, **asked)


def test_a_replacement_falls_back_on_destinations_alone() -> None:
    """Broker 5 would be in the rack of a replica that stays, so broker 4 gets it."""
    of = cluster(["/a", "/b", "/c", "/c", "/b"], [(0, 2)], 1_000)
    asked = {"action": "replace", "replacements": {"0": 3}}
    assert [m.target for m in plan(of, **asked, destinations=[3, 4]).moves] == [(4, 2)]
    assert "cannot leave" in problems(
        replace(of, disks={b: (10_000, 9_000 if b == 4 else 0) for b in range(5)}),
        **asked,
        destinations=[3],
    )


def test_log_dirs_are_evacuated_to_destinations_where_their_broker_has_no_room() -> None:
    of = cluster(["", "", ""], [(0,)], 1_000)
    made = plan(of, action="evacuate_log_dirs", log_dirs=["0:/data/0"], destinations=[2])
    assert [move.target for move in made.moves] == [(2,)]


def test_offline_replicas_get_homes_on_destinations_or_are_named() -> None:
    of = replace(cluster([""] * 4, [(0, 1), (1, 3)], 100), dead=frozenset({1}))
    made = plan(of, action="fix_offline_replicas", destinations=[3])
    assert [move.target for move in made.moves] == [(0, 3)]
    assert [(n.subject.name, n.obstacle) for n in infeasible(made)] == [("t-1", Obstacle.NO_BROKER)]


def test_racks_are_repaired_as_far_as_destinations_can() -> None:
    of = cluster(["/a", "/a", "/b", "/c"], [(0, 1)], 100)
    assert plan(of, action="repair_racks", destinations=[3]).moves[0].adding == (3,)
    kept = plan(of, action="repair_racks", destinations=[1])
    assert kept.moves == ()
    assert [note.obstacle for note in infeasible(kept)] == [Obstacle.CLOSED_KEEP_UNEVEN]


def test_a_file_that_goes_elsewhere_is_refused() -> None:
    of = cluster([""] * 4, [(0, 1)], 100)

    def asked(*replicas: int) -> dict[str, object]:
        entry = {"topic": "t", "partition": 0, "replicas": list(replicas)}
        return {"action": "reassign", "reassignment": {"version": 1, "partitions": [entry]}}

    assert len(plan(of, **asked(2, 1), destinations=[2]).moves) == 1
    assert (
        problems(of, **asked(2, 3), destinations=[3])
        == "t-0 would get a replica on broker 2, and destinations does not name it: change the "
        "file, or destinations."
    )


def test_a_budget_leaves_replicas_elsewhere_and_names_them() -> None:
    made = plan(SHOP, action="rebalance", topics=["orders"], destinations=[4, 5], budget_moves=6)
    after = SHOP.after(made).replicas
    left = {str(p) for p, row in after.items() if p.topic == "orders" and {*row} - {4, 5}}
    named = [n for n in infeasible(made) if n.obstacle is Obstacle.OUTSIDE_DESTINATIONS]
    assert left
    assert {note.subject.name for note in named} == left


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"destinations": [9]}, "Unknown broker 9."),
        ({"destinations": [4]}, "orders-0 has 2 replicas; destinations for it: broker 4."),
        (
            {"destinations": [4, 5], "topics": ["orders:3"]},
            "Only some partitions of orders are to go to the destinations",
        ),
        (
            {"destinations": [4, 5], "broker_sets": red(0, 1)},
            "orders: destinations has brokers 4 and 5, and the topic's broker set 'red' has "
            "brokers 0 and 1: none is in both.",
        ),
        (
            {"destinations": [4, 5], "broker_sets": red(0, 1, 4)},
            "orders-0 has 2 replicas; destinations for it: broker 4, those of its broker set "
            "'red'.",
        ),
        (
            {"destinations": [4, 5], "broker_sets": red(4, 5, topic="audit", exclusive=True)},
            "each of them is of an exclusive broker set of other topics",
        ),
        (
            {"action": "drain", "brokers": [0], "destinations": [4], "broker_sets": red(0, 1, 2)},
            "orders: destinations has broker 4, and the topic's broker set 'red' has brokers 0, 1 "
            "and 2: none is in both.",
        ),
        (
            {
                "action": "set_replication_factor",
                "replication_factor": 3,
                "destinations": [4],
                "broker_sets": red(0, 1, 2),
            },
            "orders: destinations has broker 4, and the topic's broker set 'red'",
        ),
        (
            {
                "action": "replace",
                "replacements": {"0": 4},
                "destinations": [4],
                "broker_sets": red(0, 1, 2),
            },
            "orders: destinations has broker 4, and the topic's broker set 'red'",
        ),
    ],
)
def test_what_destinations_cannot_be_is_refused_and_both_sides_are_named(
    asked: dict[str, Any], problem: str
) -> None:
    assert problem in problems(SHOP, **{"action": "rebalance", "topics": ["orders"], **asked})


def test_destinations_that_take_nothing_are_refused() -> None:
    of = replace(SHOP, dead=frozenset({4}), cordoned=frozenset({5}))
    found = problems(of, action="drain", brokers=[0], destinations=[4, 5])
    assert "Destination 4 is not live." in found
    assert "Destination 5 takes no new replicas" in found


ONE_RACK = {"action": "drain", "brokers": [1]}
"""Of a partition on brokers 0 (/a) and 1 (/b): broker 2 is in /a, and 3 in /b."""


def test_destinations_of_too_few_racks_are_refused_and_better_ones_named() -> None:
    of = cluster(["/a", "/b", "/a", "/b"], [(0, 1)], 100)
    assert problems(of, **ONE_RACK, destinations=[2]) == (
        "t-0 would be spread worse over the racks than it is: destinations leaves broker 2 (/a) "
        "for it, and broker 3 (/b) would be better. Name a better one in destinations, or plan "
        "without racks (ignore_racks)."
    )
    assert plan(of, **ONE_RACK, destinations=[2, 3]).moves[0].target == (0, 3)
    assert plan(of, **ONE_RACK, destinations=[2], ignore_racks=True).moves[0].target == (0, 2)


def test_where_no_broker_would_spread_it_better_destinations_are_not_what_is_refused() -> None:
    of = cluster(["/a", "/b", "/a", "/a"], [(0, 1)], 100)
    assert plan(of, **ONE_RACK, destinations=[2]).moves[0].target == (0, 2)
    shut = replace(cluster(["/a", "/b", "/a", "/b"], [(0, 1)], 100), cordoned=frozenset({3}))
    assert "broker 3 (/b), with all log dirs offline" in problems(
        shut, **ONE_RACK, destinations=[2]
    )


@st.composite
def asked_clusters(draw: st.DrawFn) -> tuple[Cluster, dict[str, Any]]:
    """Two topics on six brokers of a tree of up to two levels, a request and its destinations."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    rows = [
        [tuple(rng.permutation(6)[:2].tolist()) for _ in range(rng.integers(4, 14))]
        for _ in range(2)
    ]
    racks = draw(
        st.sampled_from([[""] * 6, RACKS, ["/x/a", "/x/b", "/y/a", "/y/b", "/x/a", "/y/c"]])
    )
    of = both(
        *(
            cluster(racks, part, sizes=rng.integers(1, 2_000, len(part)).tolist(), topic=name)
            for part, name in zip(rows, ("orders", "audit"), strict=True)
        )
    )
    named = rng.permutation([1, 2, 3, 4, 5])[: draw(st.integers(2, 5))]
    sets = draw(st.sampled_from([[], red(0, 1, 2, 3, 4), red(4, 5, topic="audit", exclusive=True)]))
    caps = draw(st.sampled_from([{}, {"default": {"replicas": 12}}]))
    action: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"action": "rebalance"},
                {"action": "rebalance", "topics": ["orders"], "effort": "thorough"},
                {"action": "rebalance", "min_leaders": {"*": 1}, "budget_moves": 9},
                {"action": "rebalance", "tolerances": {"replicas": 0.1, "topic_spread": 0.1}},
                {"action": "drain", "brokers": [0]},
                {"action": "set_replication_factor", "replication_factor": 3},
                {"action": "repair_racks"},
                {"action": "replace", "replacements": {"0": int(named[0])}},
                {"action": "evacuate_log_dirs", "log_dirs": ["0:/data/0"]},
            ]
        )
    )
    return of, {**action, "caps": caps, "broker_sets": sets, "destinations": sorted(named.tolist())}


@pytest.mark.slow
@property_of(160)
@given(asked_clusters())
def test_no_action_puts_a_new_replica_elsewhere(asked: tuple[Cluster, dict[str, Any]]) -> None:
    of, request = asked
    try:
        made = plan(of, **request)
    except InvalidRequestError:
        return
    after, named = of.after(made), set(request["destinations"])
    assert new_replicas(of, after) <= named
    if request["action"] != "rebalance":
        return
    scope = request.get("topics") or ["orders", "audit"]
    left = {p for p, row in after.replicas.items() if p.topic in scope and {*row} - named}
    assert {str(p) for p in left} <= {note.subject.name for note in infeasible(made)}


def test_a_topic_beside_the_request_keeps_its_place() -> None:
    made = plan(SHOP, action="rebalance", exclude_topics=["audit"], destinations=[4, 5])
    assert {move.partition.topic for move in made.moves} == {"orders"}
    assert TopicPartition("audit", 0) not in {move.partition for move in made.moves}
