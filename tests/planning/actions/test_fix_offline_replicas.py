"""Replicas on dead brokers and in failed log dirs: which of them move, and which stay and are
listed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.domain.plan.plan import Plan
from tests.planning.clusters import cluster
from tests.planning.planned import T, infeasible, plan, problems

RACKS = ["/a", "/a", "/b", "/b", "/c", "/c"]
ROWS = [(0, 1, 2), (3, 1, 0), (3,), (1, 2, 3), (0, 2, 4)]
UNWELL: dict[str, Any] = {"dead": frozenset({3}), "failed": frozenset({(T[0], 1)})}
FIX = {"action": "fix_offline_replicas"}


def targets(made: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    return {move.partition: move.target for move in made.moves}


def test_a_replica_outside_of_the_broker_set_evens_out_no_rack_of_it() -> None:
    """Broker 0 is of another set. Of the brokers of the set, 3 shares no rack with 1."""
    of = cluster(["/b", "/b", "/a", "/a", "/b"], [(0, 4, 2)], dead=frozenset({4}))
    bound = [{"name": "s", "topics": ["t"], "brokers": [1, 2, 3]}]
    made = plan(of, **FIX, broker_sets=bound)
    assert targets(made) == {T[0]: (0, 1, 2)}


def test_only_offline_replicas_move_and_the_others_keep_their_places() -> None:
    made = plan(cluster(RACKS, ROWS, **UNWELL), **FIX)
    moved = targets(made)
    assert moved.keys() == {T[0], T[1], T[3]}
    assert (moved[T[0]][0], moved[T[0]][2]) == (0, 2)
    assert moved[T[1]][1:] == (1, 0)
    assert moved[T[3]][:2] == (1, 2)
    assert made.summary.bytes_to_move == made.summary.lower_bound_bytes == 300
    assert {move.reason.value for move in made.moves} == {"offline"}
    assert "A log dir of broker 1 has failed" in why_text(made.moves[0])
    assert "Broker 3 is not live, 2 of its replicas in sync" in why_text(made.moves[1])


def test_new_homes_are_where_the_racks_want_them() -> None:
    made = plan(cluster(RACKS, ROWS, **UNWELL), **FIX)
    assert targets(made)[T[3]][2] in (4, 5)
    assert targets(made)[T[0]][1] in (4, 5)


def test_a_partition_without_a_leader_is_named_and_left() -> None:
    made = plan(cluster(RACKS, ROWS, **UNWELL), **FIX)
    assert [(subject_text(note.subject), obstacle_text(note)) for note in infeasible(made)] == [
        ("t-2", "it has no live leader to copy from: left alone")
    ]


def test_a_replica_that_fits_on_no_broker_is_named_and_left_and_the_rest_is_planned() -> None:
    of = cluster([""] * 4, [(0, 1, 2, 3), (0, 3)], dead=frozenset({3}))
    made = plan(of, **FIX)
    assert targets(made).keys() == {T[1]}
    (note,) = infeasible(made)
    assert subject_text(note.subject) == "t-0"
    assert "lower its replication factor" in obstacle_text(note)


def test_the_most_endangered_get_what_room_there_is() -> None:
    """Broker 3 has room for one replica: for that of the partition with one left in sync."""
    disks = {0: (1000, 0), 1: (1000, 0), 2: (1000, 0), 3: (1000, 150)}
    of = cluster([""] * 4, [(0, 1, 2), (0, 1, 2)], disks=disks, dead=frozenset({2}))
    made = plan(replace(of, lagging=frozenset({(T[1], 1)})), **FIX)
    assert targets(made) == {T[1]: (0, 1, 3)}
    assert made.moves[0].in_sync == made.moves[0].danger == 1


def test_a_budget_goes_to_the_most_endangered() -> None:
    of = cluster([""] * 5, [(0, 1, 2), (0, 1, 2), (0, 1, 2)], [500, 300, 100], dead=frozenset({2}))
    made = plan(replace(of, lagging=frozenset({(T[2], 1)})), **FIX, budget_moves=2)
    assert targets(made).keys() == {T[0], T[2]}
    (note,) = infeasible(made)
    assert (subject_text(note.subject), note.nearest) == ("offline replicas", 1)


def test_brokers_and_topics_limit_what_gets_new_homes() -> None:
    of = cluster(RACKS, ROWS, **UNWELL)
    assert targets(plan(of, **FIX, brokers=[1])).keys() == {T[0]}
    assert targets(plan(of, **FIX, exclude_topics=["t"])) == {}
    assert "Unknown topic" in problems(of, **FIX, topics=["nope"])


def test_internal_topics_are_taken_along() -> None:
    of = cluster(RACKS, [(3, 1)], dead=frozenset({3}), internal=frozenset({"t"}))
    assert targets(plan(of, **FIX)).keys() == {T[0]}


def test_nothing_is_planned_where_nothing_is_offline_and_lagging_replicas_stay() -> None:
    of = cluster(RACKS, ROWS, lagging=frozenset({(T[0], 1)}))
    assert targets(plan(of, **FIX)) == {}


@pytest.mark.parametrize("action", ["repair_racks", "rebalance", "balance_leaders"])
def test_other_actions_leave_partitions_with_offline_replicas_alone_and_say_so(action: str) -> None:
    of = cluster(RACKS, [*ROWS, (0, 1)], **UNWELL)
    made = plan(of, action=action)
    assert targets(made).keys().isdisjoint({T[0], T[1], T[2], T[3]})
    notes = {subject_text(note.subject): note for note in infeasible(made)}
    assert notes["offline replicas of broker 3"].wanted == 2
    assert "it is not live" in obstacle_text(notes["offline replicas of broker 3"])
    assert "a log dir of it has failed" in obstacle_text(notes["offline replicas of broker 1"])
    assert "no live leader" in obstacle_text(notes["t-2"])


def test_racks_are_repaired_despite_a_dead_broker_and_a_partition_without_a_leader() -> None:
    made = plan(cluster(RACKS, [*ROWS, (0, 1)], **UNWELL), action="repair_racks")
    assert targets(made).keys() == {T[5]}


def test_fewer_replicas_are_planned_where_enough_are_online() -> None:
    of = cluster(RACKS, [(0, 1, 3), (0, 3)], dead=frozenset({3}))
    made = plan(of, action="set_replication_factor", replication_factor=2)
    assert targets(made) == {T[0]: (0, 1)}
    short = cluster(RACKS, [(0, 3, 4)], dead=frozenset({3, 4}))
    made = plan(short, action="set_replication_factor", replication_factor=2)
    assert targets(made) == {}
    assert [subject_text(note.subject) for note in infeasible(made)] == ["t-0"]
