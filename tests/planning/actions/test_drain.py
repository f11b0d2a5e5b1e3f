"""What a drain does on clusters small enough to check by eye."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.domain.plan.move import MoveReason
from tests.planning.clusters import cluster
from tests.planning.planned import ROWS, THREE_RACKS, T, plan, problems


def test_a_drained_brokers_replicas_go_to_its_rack_and_nothing_else_moves() -> None:
    made = plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[0])
    assert {move.partition: move.target for move in made.moves} == {
        T[0]: (2, 1, 4),
        T[2]: (2, 4, 1),
        T[4]: (4, 1, 2),
    }
    assert {move.reason for move in made.moves} == {MoveReason.DRAIN}
    assert why_text(made.moves[0]).startswith("Broker 0 is drained; broker 1")
    assert made.summary.bytes_to_move == made.summary.lower_bound_bytes == 300
    assert made.summary.rack_violations_after == 0


def test_a_drain_prediction_counts_the_busiest_broker_at_the_rate_that_is_really_delivered() -> (
    None
):
    made = plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[0], rate=10, efficiency=0.5)
    assert made.summary.predicted_s == pytest.approx(300 / 5)  # all of it goes into broker 1
    out = {load.broker: load.bytes_out for load in made.summary.brokers}
    assert out == {0: 100, 1: 0, 2: 100, 3: 0, 4: 100, 5: 0}  # from the leaders
    assert plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[0]).summary.predicted_s is None


def test_leaderships_lost_in_a_drain_are_spread_evenly() -> None:
    rows = [(0, 1 + i % 3) for i in range(12)]
    made = plan(cluster([""] * 4, rows), action="drain", brokers=[0])
    leaders = [load.leaders_after for load in made.summary.brokers]
    assert leaders == [0, 4, 4, 4]
    assert made.summary.leader_changes == 12


def test_empty_partitions_are_spread_in_a_drain_too() -> None:
    rows = [(0,)] * 30
    made = plan(cluster([""] * 4, rows, sizes=0), action="drain", brokers=[0])
    assert [load.replicas_after for load in made.summary.brokers] == [0, 10, 10, 10]


def test_a_drain_takes_internal_topics_along() -> None:
    offsets = cluster([""] * 3, [(0, 1)], topic="__consumer_offsets")
    of = replace(offsets, internal=frozenset({"__consumer_offsets"}))
    assert plan(of, action="drain", brokers=[0]).moves[0].target == (1, 2)


def test_a_dead_broker_can_be_drained() -> None:
    of = cluster([""] * 3, [(0, 1), (1, 2)], sizes=50, dead=frozenset({0}))
    made = plan(of, action="drain", brokers=[0])
    assert [(move.partition, move.target, move.size_bytes) for move in made.moves] == [
        (T[0], (2, 1), 50)
    ]


def test_draining_a_whole_rack_spreads_over_the_racks_that_are_left() -> None:
    made = plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[4, 5])
    assert made.summary.rack_violations_after == 0
    assert all({0, 1} & set(m.target) and {2, 3} & set(m.target) for m in made.moves)


def test_the_drain_repairs_the_racks_of_partitions_that_move_anyway() -> None:
    made = plan(cluster(THREE_RACKS, [(0, 2, 3), (2, 3, 4)]), action="drain", brokers=[0])
    assert [move.partition for move in made.moves] == [T[0]]
    racks = {THREE_RACKS[broker] for broker in made.moves[0].target}
    assert racks == {"/r0", "/r1", "/r2"}
    assert made.summary.lower_bound_bytes == made.summary.bytes_to_move == 200


@pytest.mark.parametrize(
    ("brokers", "problem"),
    [
        ([9], "Unknown broker 9."),
        ([0, 1, 2, 3, 4, 5], "No live broker is left"),
        ([0, 1, 2, 3], "3 replicas; live brokers left: 2"),
    ],
)
def test_a_drain_that_cannot_be_is_refused(brokers: list[int], problem: str) -> None:
    assert problem in problems(cluster(THREE_RACKS, ROWS), action="drain", brokers=brokers)


def test_a_drain_does_not_supersede_a_reassignment_that_is_running() -> None:
    of = cluster(THREE_RACKS, ROWS, adding=frozenset({(T[0], 0)}))
    assert "t-0 is being reassigned already" in problems(of, action="drain", brokers=[0])


def test_a_drain_with_topics_hidden_from_us_is_refused() -> None:
    of = cluster([""] * 3, [(0,)], hidden_topics=("secret",))
    assert "secret" in problems(of, action="drain", brokers=[0])


def test_a_partition_without_a_leader_is_named_and_the_rest_of_the_broker_drained() -> None:
    of = cluster([""] * 3, [(0,), (0, 1)], dead=frozenset({0}))
    made = plan(of, action="drain", brokers=[0])
    assert [move.partition for move in made.moves] == [T[1]]
    (note,) = made.summary.infeasible
    assert (subject_text(note.subject), "no live leader" in obstacle_text(note)) == ("t-0", True)


def test_partitions_of_a_drained_broker_also_leave_a_dead_one_and_no_others_do() -> None:
    of = cluster([""] * 4, [(0, 1), (1, 2)], dead=frozenset({1}))
    (move,) = plan(of, action="drain", brokers=[0]).moves
    assert (move.partition, set(move.target)) == (T[0], {2, 3})
    assert "Broker 0 is drained, and broker 1 not live" in why_text(move)


def test_a_live_broker_that_gives_a_replica_up_for_the_racks_is_not_called_dead() -> None:
    """Two replicas are in one rack: a partition that is copied anyway is made even."""
    of = cluster(["/a", "/a", "/b", "/b", "/c"], [(0, 1, 2)])
    (move,) = plan(of, action="drain", brokers=[2]).moves
    assert (set(move.target) & {0, 1}, set(move.target) & {3, 4}) == ({0}, {3, 4})
    assert why_text(move) == (
        "Broker 2 is drained, and racks or broker sets allow it on broker 1 no more; brokers 3 "
        "and 4, the least loaded that the racks allow, take their places."
    )


def test_a_branch_that_cannot_be_even_within_is_left_for_one_that_can() -> None:
    """The emptier data centre has a rack that takes nothing: two replicas would share a rack."""
    racks = ["/dc0/a", "/dc1/b", "/dc0/c", "/dc1/d", "/dc0/a", "/dc1/b"]
    of = cluster(racks, [(1, 3, 4)])
    params = {"brokers": [1], "exclude_brokers": [2], "weights": {"3": 0.1, "5": 0.1}}
    (move,) = plan(of, action="drain", **params).moves
    assert set(move.target) == {5, 3, 4}


def test_no_broker_gets_more_than_its_disk_holds() -> None:
    disks = {0: (1000, 0), 1: (1000, 150), 2: (1000, 500)}
    of = cluster([""] * 3, [(0,)] * 4, disks=disks)
    after = [load.replicas_after for load in plan(of, action="drain", brokers=[0]).summary.brokers]
    assert after == [0, 1, 3]


def test_disks_too_small_for_a_drain_are_refused() -> None:
    disks = {0: (1000, 0), 1: (1000, 150), 2: (1000, 150)}
    of = cluster([""] * 3, [(0,)] * 4, disks=disks)
    assert "have the disk space" in problems(of, action="drain", brokers=[0])


def test_the_part_of_a_disk_that_must_stay_free_stays_free() -> None:
    disks = {0: (1000, 500), 1: (1000, 150), 2: (1000, 500)}
    of = cluster([""] * 3, [(0,), (2,)], disks=disks)
    assert plan(of, action="drain", brokers=[0]).moves[0].target == (1,)
    assert plan(of, action="drain", brokers=[0], min_free=0.1).moves[0].target == (2,)


def test_a_full_rack_is_left_out_and_the_summary_counts_the_uneven_partition() -> None:
    disks = {0: (1000, 500), 1: (1000, 0), 2: (1000, 500), 3: (1000, 500)}
    of = cluster(["/r0", "/r0", "/r1", "/r1"], [(0, 2)], disks=disks)
    made = plan(of, action="drain", brokers=[0])
    assert made.moves[0].target in ((2, 3), (3, 2))
    assert made.summary.rack_violations_after == 1


def test_cordoned_brokers_keep_what_they_have_and_get_nothing() -> None:
    of = cluster([""] * 4, [(0, 1)] * 4, cordoned=frozenset({1, 2}))
    made = plan(of, action="drain", brokers=[0])
    assert {frozenset(move.target) for move in made.moves} == {frozenset({1, 3})}
