"""A topic's replicas and leaders stay spread over brokers while the cluster is balanced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.clusters import CASES, build
from benchmarks.people_clusters import cases, people
from benchmarks.planning.plan import solved
from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible import SubjectKind
from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest, spread_tolerance
from rehome.errors import InvalidRequestError
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.planning.rebalance.rebalance import plan_rebalance
from rehome.planning.search.state import Search
from tests.planning.clusters import Cluster
from tests.planning.planned import plan

SPREADS_TOPICS = True  # see conftest

TOPICS, PARTITIONS = 5, 12
EVEN = {"topic_spread": 0.1}
"""Topics are to come to their shares, not only to stay as they are."""


def spread_cluster(brokers: int = 6, empty: int = 0, racks: int = 0, skew: float = 1.0) -> Cluster:
    """Topics that lie evenly on all brokers but the empty ones; their sizes do not."""
    rng = np.random.default_rng(3)
    full = brokers - empty
    replicas, sizes = {}, {}
    for topic in range(TOPICS):
        for number in range(PARTITIONS):
            name = TopicPartition(f"t{topic}", number)
            replicas[name] = (number % full, (number + 1 + number // full) % full)
            size = rng.lognormal(skew if number % full < 2 else 0.0, 1.2)
            sizes[name] = int(size * 1e9)
    paths = {broker: f"/r{broker % racks}" if racks else "" for broker in range(brokers)}
    return Cluster(racks=paths, replicas=replicas, sizes=sizes)


def counts(of: Cluster, *, leaders: bool = False) -> np.ndarray:
    """(topics, brokers) replicas, or leaders."""
    held = np.zeros((TOPICS, len(of.racks)), int)
    for partition, row in of.replicas.items():
        for broker in row[:1] if leaders else row:
            held[int(partition.topic[1:]), broker] += 1
    return held


@pytest.mark.slow
def test_a_rebalance_leaves_each_topic_within_one_replica_of_its_share() -> None:
    of = spread_cluster()
    assert (counts(of) == 4).all()
    made = plan(of, action="rebalance")
    after = of.after(made)
    assert made.summary.replica_moves
    assert np.abs(counts(after) - 4).max() <= 1
    assert np.abs(counts(after, leaders=True) - 2).max() <= 1
    assert not [note for note in made.summary.infeasible if "topic" in subject_text(note.subject)]


@pytest.mark.slow
def test_without_the_target_a_rebalance_spreads_topics_in_any_way() -> None:
    of = spread_cluster()
    made = plan(of, action="rebalance", tolerances={"topic_spread": None})
    assert np.abs(counts(of.after(made)) - 4).max() > 1
    assert made.summary.topics is None


@pytest.mark.slow
def test_the_cost_of_the_target_is_reported_with_the_others() -> None:
    of = spread_cluster()
    made, free = (
        plan(of, action="rebalance", tolerances=asked, dry_run=True)
        for asked in ({}, {"topic_spread": None})
    )
    price = next(p for p in made.summary.prices if p.resource == "topic_spread")
    assert price.method == "solved"
    assert price.bytes_to_move == made.summary.bytes_to_move - free.summary.bytes_to_move
    assert not [p for p in free.summary.prices if p.resource == "topic_spread"]


@pytest.mark.slow
def test_a_wider_tolerance_leaves_topics_more_room() -> None:
    of = spread_cluster()
    made = plan(of, action="rebalance", tolerances={"topic_spread": 0.5})
    assert np.abs(counts(of.after(made)) - 4).max() <= 2


@pytest.mark.slow
def test_new_brokers_get_their_share_of_each_topic() -> None:
    of = spread_cluster(brokers=6, empty=2)
    made = plan(of, action="expand", brokers=[4, 5], tolerances=EVEN)
    held = counts(of.after(made))[:, 4:]
    named = {subject_text(note.subject) for note in made.summary.infeasible}
    for topic in range(TOPICS):
        assert (np.abs(held[topic] - 4) <= 1).all() or f"topic t{topic}" in named


def test_a_drain_hands_replicas_to_the_brokers_that_lack_the_topic() -> None:
    of = spread_cluster()
    made = plan(of, action="drain", brokers=[5], dry_run=True)
    after = of.after(made)
    held = counts(after)[:, :5]
    assert (counts(after)[:, 5] == 0).all()
    assert np.abs(held - 24 / 5).max() <= 1
    assert np.abs(counts(after, leaders=True)[:, :5] - 12 / 5).max() <= 1
    assert [(p.resource, p.method) for p in made.summary.prices] == [("topic_spread", "free")]


@pytest.mark.slow
def test_shares_of_topics_follow_the_weights_of_brokers() -> None:
    of = spread_cluster()
    made = plan(of, action="rebalance", weights={0: 2.0}, tolerances=EVEN)
    held, share = counts(of.after(made)), 24 / 7
    named = {subject_text(note.subject) for note in made.summary.infeasible}
    for topic in range(TOPICS):
        off = np.abs(held[topic] - share * np.array([2, 1, 1, 1, 1, 1])).max()
        assert off <= 1 or f"topic t{topic}" in named


def test_a_topic_that_racks_keep_from_its_share_is_named() -> None:
    rows = [(n % 4, 4 + n % 2) for n in range(24)]
    of = Cluster(
        racks={b: "/a" if b < 4 else "/b" for b in range(6)},
        replicas={TopicPartition("t0", n): row for n, row in enumerate(rows)},
        sizes={TopicPartition("t0", n): 10**9 for n in range(24)},
    )
    made = plan(of, action="rebalance", tolerances=EVEN)
    notes = [note for note in made.summary.infeasible if subject_text(note.subject) == "topic t0"]
    assert len(notes) == 1
    assert "racks" in obstacle_text(notes[0])


def test_two_replicas_of_a_topic_may_always_share_a_broker() -> None:
    names = [TopicPartition("small", n) for n in range(2)]
    of = Cluster(
        racks=dict.fromkeys(range(6), ""),
        replicas={names[0]: (0, 1), names[1]: (1, 0)},
        sizes=dict.fromkeys(names, 10**9),
    )
    assert plan(of, action="rebalance").summary.topics is None


def small_topics() -> Cluster:
    """Topics of eight partitions, the first three with large ones, on ten of twelve brokers: none
    holds more than two replicas of a topic. The first two brokers hold nothing yet.
    """
    replicas, sizes = {}, {}
    for topic in range(12):
        for number in range(8):
            name, first = TopicPartition(f"t{topic:02d}", number), topic + 2 * number
            replicas[name] = (2 + first % 10, 2 + (first + 1) % 10)
            sizes[name] = int(1e9 * (50 if topic < 3 else 1))
    return Cluster(racks=dict.fromkeys(range(12), ""), replicas=replicas, sizes=sizes)


def most_together(of: Cluster) -> dict[str, int]:
    """Topic → the most replicas that one broker holds of it."""
    held: dict[tuple[str, int], int] = {}
    for partition, row in of.replicas.items():
        for broker in row:
            held[partition.topic, broker] = held.get((partition.topic, broker), 0) + 1
    return {
        topic: max(count for (name, _), count in held.items() if name == topic) for topic, _ in held
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", [{"action": "rebalance"}, {"action": "expand", "brokers": [0, 1]}]
)
@pytest.mark.parametrize("tolerances", [{}, EVEN])
def test_small_topics_are_not_piled_on_a_broker(
    asked: dict[str, Any], tolerances: dict[str, float]
) -> None:
    of = small_topics()
    made = plan(of, **asked, tolerances=tolerances)
    assert made.summary.replica_moves > 10
    before, after = most_together(of), most_together(of.after(made))
    named = {subject_text(note.subject) for note in made.summary.infeasible}
    for topic, most in after.items():
        assert most <= max(2, before[topic]) or f"topic {topic}" in named
    free = most_together(of.after(plan(of, **asked, tolerances={"topic_spread": None})))
    assert max(free.values()) > max(before.values()), "nothing else would keep them apart"


def test_a_drain_gives_small_topics_to_brokers_without_them() -> None:
    of = small_topics()
    made = plan(of, action="drain", brokers=[11])
    assert max(most_together(of.after(made)).values()) <= max(2, *most_together(of).values())
    assert made.summary.replica_moves == sum(11 in row for row in of.replicas.values())


@pytest.mark.slow
def test_by_default_no_topic_ends_further_off_and_nothing_moves_for_topics_alone() -> None:
    of = spread_cluster(brokers=6, empty=2)
    made, evened = (
        plan(of, action="expand", brokers=[4, 5], tolerances=asked) for asked in ({}, EVEN)
    )
    assert made.summary.replica_moves < evened.summary.replica_moves
    assert made.summary.bytes_to_move <= evened.summary.bytes_to_move
    before, after = counts(of), counts(of.after(made))
    share = 4
    assert (after <= np.maximum(before, share + 1)).all()
    assert (after >= np.minimum(before, share - 1)).all()


def test_empty_partitions_are_not_moved_for_counts_that_no_target_asks_for() -> None:
    of = spread_cluster(brokers=6, empty=2)
    of = replace(of, sizes=dict.fromkeys(of.sizes, 0))
    assert not plan(of, action="rebalance").moves


def test_empty_partitions_are_not_moved_for_counts_that_are_even_already() -> None:
    of = Cluster(
        racks=dict.fromkeys(range(3), ""),
        replicas={TopicPartition("t", n): (n % 3,) for n in range(28)},
        sizes={TopicPartition("t", n): 100 * (n == 0) for n in range(28)},
    )
    made = plan(of, action="rebalance", tolerances={"replicas": 0.1, "leaders": 0.1})
    assert not made.moves


@pytest.mark.slow
def test_planning_again_leaves_topics_as_they_are() -> None:
    of = spread_cluster()
    after = of.after(plan(of, action="rebalance"))
    assert not plan(after, action="rebalance").moves


@pytest.mark.slow
def test_the_same_request_gives_the_same_plan_in_whatever_order_rows_come() -> None:
    of, request = spread_cluster(), parse_request({"action": "rebalance"})
    hashes = {
        make_plan(of.snapshot(shuffle=seed), request, PlanOptions(plan_id="p")).plan_hash
        for seed in (1, 2)
    }
    assert len(hashes) == 1


@pytest.mark.slow
def test_the_summary_states_how_evenly_topics_are_spread() -> None:
    of = spread_cluster(brokers=6, empty=2)
    topics = plan(of, action="expand", brokers=[4, 5], tolerances=EVEN).summary.topics
    assert topics is not None
    assert topics.topics == TOPICS
    assert topics.outside_before > topics.outside_after
    assert topics.worst_before >= 3


@pytest.mark.slow
def test_a_replica_that_only_moves_for_its_topic_says_so() -> None:
    of = spread_cluster(brokers=6, empty=2, skew=0.0)
    made = plan(of, action="expand", brokers=[4, 5], tolerance=0.9, tolerances=EVEN)
    assert made.moves
    assert any("replicas of t" in why_text(move) for move in made.moves)


@pytest.mark.parametrize("action", ["rebalance", "expand", "drain"])
def test_the_target_is_on_unless_the_request_says_otherwise(action: str) -> None:
    brokers = {} if action == "rebalance" else {"brokers": [1]}
    assert spread_tolerance(parse_request({"action": action, **brokers})) == 0.1
    free = parse_request({"action": action, **brokers, "tolerances": {"topic_spread": None}})
    assert np.isinf(spread_tolerance(free))
    assert np.isinf(spread_tolerance(ReassignmentRequest(Action.REPAIR_RACKS)))


def test_a_drain_refuses_tolerances_that_it_does_not_balance() -> None:
    with pytest.raises(InvalidRequestError, match="replicas are given"):
        parse_request({"action": "drain", "brokers": [1], "tolerances": {"replicas": 0.1}})


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [0.0, 0.001])
def test_no_topic_ends_worse_where_bands_of_bytes_cannot_be_met(tolerance: float) -> None:
    (case,) = (case for case in cases() if case.name == "tolerance 0, 20 brokers")
    arrays = people(case)
    outcome = plan_rebalance(arrays, ReassignmentRequest(Action.REBALANCE, tolerance=tolerance))
    assert not [n for n in outcome.infeasible if n.subject.kind is SubjectKind.TOPIC]
    before, after = (
        np.stack(
            [
                np.bincount(rows[arrays.topic_of == topic].ravel(), minlength=20)
                for topic in range(len(arrays.topics))
            ]
        )
        for rows in (outcome.layout.origin, outcome.layout.rows)
    )
    share = after.sum(axis=1, keepdims=True) / 20
    slack = np.maximum(1, 0.1 * share)
    assert (after != before).any()
    assert (after <= np.maximum(before, np.ceil(share + slack))).all()
    assert (after >= np.minimum(before, np.floor(share - slack))).all()


@pytest.mark.slow
def test_topics_get_the_room_that_needless_moves_of_a_large_plan_had_taken() -> None:
    uneven = next(case for case in CASES if case.name == "uneven")
    problem = solved(build(uneven, 7_000, 30), "default, no worse").problem
    counts = Search(problem).topic_counts
    assert counts is not None
    assert counts.outside() <= 2  # 8 if topics are repaired only before needless moves are undone
