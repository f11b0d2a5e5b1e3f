"""Replicas on trees of any shape: as even at every level as an exhaustive search can make them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from rehome.domain.actions import Action
from rehome.domain.plan.infeasible_text import subject_text
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.replica_sets import Fullness, Placer, SpreadFirst
from rehome.planning.placement.topic_counts import TopicCounts
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.placement.evenness import even_sets, is_even
from tests.planning.planned import THREE_RACKS, T, plan
from tests.planning.planner.test_plan_properties import paths
from tests.planning.planner.test_plan_properties import plan as planned
from tests.planning.strategies import clusters

DEEP = examples(60, suppress_health_check=[HealthCheck.filter_too_much])

# Racks of 3, 10, 20 and 7 brokers, for instance in a cluster that grew rack by rack.
UNEVEN = [f"/r{rack}" for rack, brokers in enumerate((3, 10, 20, 7)) for _ in range(brokers)]


@DEEP
@given(of=clusters(max_depth=4, ragged=True), replicas=st.integers(1, 5))
def test_a_replication_factor_is_spread_evenly_and_keeps_all_that_evenness_lets_it(
    of: Cluster, replicas: int
) -> None:
    assume(replicas <= len(of.racks))
    made = planned(
        of, ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=replicas)
    )
    best = even_sets(paths(of), of.racks, replicas)
    for move in made.moves:
        if len(move.current) < replicas:
            assert set(move.target) in best
            assert len(move.adding) == min(len(one - set(move.current)) for one in best)


@DEEP
@given(of=clusters(max_depth=4, ragged=True), drained=st.integers(0, 6))
def test_a_drain_leaves_what_it_moves_even(of: Cluster, drained: int) -> None:
    left = set(of.racks) - {drained}
    assume(drained in of.racks and max(map(len, of.replicas.values())) <= len(left))
    for move in planned(of, ReassignmentRequest(Action.DRAIN, brokers=(drained,))).moves:
        assert is_even(move.target, paths(of), left)
        best = even_sets(paths(of), left, len(move.target))
        assert len(move.adding) == min(len(one - set(move.current)) for one in best)


@DEEP
@given(of=clusters(max_depth=4, ragged=True))
def test_a_repair_leaves_every_partition_even_with_the_fewest_copies(of: Cluster) -> None:
    made = planned(of, ReassignmentRequest(Action.REPAIR_RACKS))
    after = of.after(made)
    for partition, row in of.replicas.items():
        best = even_sets(paths(of), of.racks, len(row))
        assert set(after.replicas[partition]) in best
        copies = len(set(after.replicas[partition]) - set(row))
        assert copies == min(len(one - set(row)) for one in best)
    uneven = sum(not is_even(row, paths(of), of.racks) for row in of.replicas.values())
    assert (made.summary.rack_violations_before, made.summary.rack_violations_after) == (uneven, 0)


@pytest.mark.slow
@DEEP
@given(of=clusters(max_depth=4, ragged=True), tolerance=st.sampled_from([0.05, 0.2]))
def test_a_rebalance_leaves_every_partition_that_it_copies_even(
    of: Cluster, tolerance: float
) -> None:
    request = ReassignmentRequest(
        Action.REBALANCE, tolerance=tolerance, tolerances={"replicas": tolerance}
    )
    for move in planned(of, request).moves:
        if move.adding:
            assert set(move.target) in even_sets(paths(of), of.racks, len(move.target))


@pytest.mark.slow
def test_no_trade_copies_a_partition_and_leaves_it_uneven() -> None:
    """Found at random: partition 9 has two replicas in rack /a, and one of another was traded."""
    rows = ["0123", "0", "213", "01", "31", "0123", "02", "0123", "03", "013", "012", "1", "213"]
    sizes = [0, 13, 17, 19, 43, 0, 9, 28, 24, 8, 11, 56, 21]
    of = cluster(["/a", "/b", "/c", "/a"], [tuple(map(int, row)) for row in rows], sizes=sizes)
    request = ReassignmentRequest(Action.REBALANCE, tolerance=0.05, tolerances={"replicas": 0.05})
    copied = [move for move in planned(of, request).moves if move.adding]
    assert copied
    for move in copied:
        assert set(move.target) in even_sets(paths(of), of.racks, len(move.target))


def test_more_replicas_than_racks_put_two_in_some_racks_and_three_in_none() -> None:
    of = cluster(THREE_RACKS, [(0,), (3,), (5,), (1, 2)])
    made = plan(of, action="set_replication_factor", replication_factor=5)
    for move in made.moves:
        assert sorted(sum(b // 2 == rack for b in move.target) for rack in range(3)) == [1, 2, 2]
    assert made.summary.rack_violations_after == 0


MIXED = [(0,), (0, 2), (0, 2, 4), (0, 2, 4, 1), (0, 1, 3), (1, 3, 5, 0, 2)]


def test_partitions_with_different_numbers_of_replicas_are_planned_side_by_side() -> None:
    of = cluster(THREE_RACKS, MIXED)
    drained = plan(of, action="drain", brokers=[0])
    assert [len(move.target) for move in drained.moves] == [len(row) for row in MIXED]
    assert drained.summary.brokers[0].replicas_after == 0
    assert drained.summary.rack_violations_after == 0
    grown = plan(of, action="set_replication_factor", replication_factor=3)
    assert {len(row) for row in of.after(grown).replicas.values()} == {3}
    assert [len(move.current) for move in grown.moves] == [1, 2, 4, 5]
    assert plan(of, action="repair_racks").moves[0].current == (0, 1, 3)


@pytest.mark.slow
def test_racks_of_very_different_size_stay_even_and_what_they_force_is_named() -> None:
    rng = np.random.default_rng(3)
    brokers = [np.flatnonzero([rack == name for rack in UNEVEN]) for name in sorted(set(UNEVEN))]
    rows = [
        [int(rng.choice(brokers[rack])) for rack in rng.permutation(4)[: rng.integers(2, 5)]]
        for _ in range(300)
    ]
    of = cluster(UNEVEN, rows)
    made = plan(of, action="rebalance", tolerance=0.05)
    assert made.summary.rack_violations_after == 0
    assert any("rack /r0" in subject_text(item.subject) for item in made.summary.infeasible)
    for action in ({"action": "drain", "brokers": [0]}, {"action": "repair_racks"}):
        assert plan(of, **action).summary.rack_violations_after == 0
    grown = plan(of, action="set_replication_factor", replication_factor=6)
    assert grown.summary.rack_violations_after == 0
    assert all(
        sorted(sum(b in rack for b in move.target) for rack in brokers) == [1, 1, 2, 2]
        for move in grown.moves
    )


def test_existing_violations_are_counted_and_repaired_when_asked_or_when_the_partition_moves() -> (
    None
):
    of = cluster(THREE_RACKS, [(0, 1, 2), (2, 3, 4), (1, 3, 5)])
    drained = plan(of, action="drain", brokers=[0])
    assert (drained.summary.rack_violations_before, drained.summary.rack_violations_after) == (2, 1)
    assert of.after(drained).replicas[T[1]] == (2, 3, 4)
    repaired = plan(of, action="repair_racks")
    assert (repaired.summary.rack_violations_before, repaired.summary.rack_violations_after) == (
        2,
        0,
    )
    grown = plan(of, action="set_replication_factor", replication_factor=4, topics=["t"])
    assert (grown.summary.rack_violations_before, grown.summary.rack_violations_after) == (2, 0)


def test_a_repair_asks_only_brokers_of_the_rack_for_space() -> None:
    of = cluster(THREE_RACKS, [(0, 1, 2), (2, 3, 4), (1, 3, 5)])
    with patch.object(Layout, "fits", side_effect=AssertionError):
        repaired = plan(of, action="repair_racks")
    assert repaired.summary.rack_violations_after == 0


def test_brokers_without_a_rack_are_one_more_child_of_the_root() -> None:
    """Racks /r0, /r1, and brokers 3 and 4, which have none."""
    of = cluster(["/r0", "/r1", "/r1", "", ""], [(1, 2), (3, 4), (0, 3)])
    repaired = of.after(plan(of, action="repair_racks")).replicas
    racks = {0: "r0", 1: "r1", 2: "r1", 3: "", 4: ""}
    assert all(len({racks[b] for b in row}) == 2 for row in repaired.values())
    assert tuple(repaired[T[2]]) == (0, 3)
    grown = of.after(plan(of, action="set_replication_factor", replication_factor=3))
    assert all({racks[b] for b in row} == {"r0", "r1", ""} for row in grown.replicas.values())
    drained = of.after(plan(of, action="drain", brokers=[0])).replicas
    assert drained[T[2]][0] in (1, 2)
    assert plan(of, action="repair_racks", ignore_racks=True).moves == ()


@pytest.mark.slow
@examples(60)
@given(of=clusters(max_depth=2, partly=True), replicas=st.integers(1, 4))
def test_partly_racked_clusters_are_spread_as_an_independent_checker_wants_it(
    of: Cluster, replicas: int
) -> None:
    paths = {b: tuple(part for part in rack.split("/") if part) for b, rack in of.racks.items()}
    replicas = min(replicas, len(of.racks))
    repaired = of.after(plan(of, action="repair_racks"))
    assert all(is_even(row, paths, of.racks) for row in repaired.replicas.values())
    made = plan(repaired, action="set_replication_factor", replication_factor=replicas)
    assert all(is_even(move.target, paths, of.racks) for move in made.moves)
    again = of.after(plan(of, action="rebalance"))
    for partition, row in again.replicas.items():
        assert is_even(row, paths, of.racks) or set(row) == set(of.replicas[partition])


@pytest.mark.parametrize("seed", range(5))
def test_the_first_child_is_the_one_that_is_ranked_first(seed: int) -> None:
    random, brokers = np.random.default_rng(seed), 60
    paths = [(f"dc{n % 2}", f"r{n % 6}") for n in range(brokers)]
    tree = RackTree(paths, random.random(brokers) < 0.9, 3)
    fullness = Fullness(tree, random.integers(9, size=brokers).astype(np.float64), np.ones(brokers))
    counts, low = random.integers(4, size=(2, 3, brokers))
    topics = TopicCounts(np.arange(3), counts, low, low + 1)
    spread_first = SpreadFirst(tree, fullness, topics)
    for partition in range(3):
        spread_first.set_partition(partition, random.random(brokers) < 0.5)
        for broker in random.choice(np.flatnonzero(tree.hosts), 9).tolist():
            fullness.add(broker, int(random.integers(9)))
        for preference in (fullness, spread_first):
            for level, groups in enumerate(tree.children):
                for node, children in enumerate(groups):
                    ranks = preference.rank(level, node, children, np.zeros(len(children), bool))
                    first = preference.first(level, node, children)
                    assert first == np.argsort(ranks, kind="stable")[0]


def test_a_partition_that_is_put_back_counts_as_it_did() -> None:
    snapshot = cluster(["/a", "/b", "/c"], [(0,), (0, 1)], [50, 30]).snapshot()
    layout = Layout(ClusterArrays.from_snapshot(snapshot), width=2)
    tree = RackTree(layout.arrays.brokers.rack_paths, np.ones(3, bool), 2)
    placer = Placer(layout, tree, np.ones(3))
    row, brokers = layout.rows[0].copy(), np.arange(3)
    before = placer.fullness.of(tree.height, brokers)
    placer.complete(0, 2)
    assert placer.fullness.of(tree.height, brokers).tolist() != before.tolist()
    placer.put_back(0, row)
    assert placer.fullness.of(tree.height, brokers).tolist() == before.tolist()
    assert layout.rows[0].tolist() == row.tolist()
