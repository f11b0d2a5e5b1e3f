"""Replicas in sync come first: what a plan keeps, and who is to lead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.planning.model.arrays import ClusterArrays
from tests.planning.clusters import cluster
from tests.planning.planned import T, infeasible, plan

NO_RACKS = [""] * 5


def test_fewer_replicas_are_those_in_sync_though_the_preferred_leader_is_not_among_them() -> None:
    of = cluster(NO_RACKS, [(0, 1, 2), (0, 1, 2)], lagging=frozenset({(T[0], 0)}))
    made = plan(of, action="set_replication_factor", replication_factor=2)
    targets = {move.partition: move.target for move in made.moves}
    assert set(targets[T[0]]) == {1, 2}
    assert targets[T[1]][0] == 0


@pytest.mark.parametrize("lagging", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
def test_no_replica_in_sync_goes_while_one_that_is_not_stays(lagging: tuple[int, ...]) -> None:
    of = cluster(
        NO_RACKS,
        [(0, 1, 2)],
        lagging=frozenset((T[0], broker) for broker in lagging),
        min_isr={"t": 2},
    )
    made = plan(of, action="set_replication_factor", replication_factor=2)
    (move,) = made.moves
    kept = set(move.target) - set(lagging)
    assert len(kept) == min(2, 3 - len(lagging))


def test_replicas_in_sync_stay_where_the_spread_would_have_others_and_the_plan_says_so() -> None:
    racks = ["/a", "/a", "/b", "/b"]
    of = cluster(racks, [(0, 1, 2), (0, 1, 2)], lagging=frozenset({(T[0], 2)}))
    made = plan(of, action="set_replication_factor", replication_factor=2)
    assert {move.partition: set(move.target) for move in made.moves} == {
        T[0]: {0, 1},
        T[1]: {0, 2},
    }
    (note,) = infeasible(made)
    assert (
        subject_text(note.subject),
        obstacle_text(note).startswith("replicas in sync are kept"),
    ) == ("t-0", True)


def test_leaders_are_balanced_onto_replicas_in_sync_only() -> None:
    rows = [(0, 1)] * 4 + [(0, 2)] * 4
    of = cluster(NO_RACKS, rows)
    behind = replace(of, lagging=frozenset((partition, 1) for partition in T[:4]))
    assert {move.target[0] for move in plan(of, action="balance_leaders").moves} == {1, 2}
    assert {move.target[0] for move in plan(behind, action="balance_leaders").moves} == {2}


def test_a_rebalance_hands_no_leadership_to_a_replica_that_is_out_of_sync() -> None:
    of = cluster(NO_RACKS[:3], [(0, 1, 2)] * 6, lagging=frozenset((p, 1) for p in T[:6]))
    made = plan(of, action="rebalance", tolerances={"leaders": 0.1}, tolerance=0.9)
    assert made.moves
    assert 1 not in {move.target[0] for move in made.moves}


def test_the_new_leader_after_a_drain_is_in_sync() -> None:
    of = cluster(NO_RACKS[:4], [(0, 1, 2)], lagging=frozenset({(T[0], 1)}))
    (move,) = plan(of, action="drain", brokers=[0]).moves
    assert move.target[0] != 1


def test_replicas_in_sync_and_offline_and_the_number_needed_are_read_from_a_snapshot() -> None:
    of = cluster(
        NO_RACKS,
        [(0, 1, 2), (3, 4)],
        lagging=frozenset({(T[0], 0)}),
        failed=frozenset({(T[0], 1)}),
        dead=frozenset({4}),
        min_isr={"t": 2},
    )
    arrays = ClusterArrays.from_snapshot(of.snapshot(shuffle=3))
    assert arrays.in_sync is not None
    assert arrays.in_sync.tolist() == [[False, False, True], [True, False, False]]
    assert arrays.offline is not None
    assert arrays.offline.tolist() == [[False, True, False], [False, True, False]]
    assert arrays.min_isr is not None
    assert arrays.min_isr.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({0: 90, 1: 95, 2: 40}, 90),  # broker 2 is not in sync
        ({0: 90, 2: 40}, -1),
        ({}, -1),
    ],
)
def test_a_move_states_up_to_which_offset_all_in_sync_replicas_had_the_messages(
    ends: dict[int, int], expected: int
) -> None:
    of = cluster(
        NO_RACKS,
        [(0, 1, 2)],
        lagging=frozenset({(T[0], 2)}),
        ends={(T[0], broker): end for broker, end in ends.items()},
    )
    (move,) = plan(of, action="drain", brokers=(2,)).moves
    assert move.end_offset == expected
