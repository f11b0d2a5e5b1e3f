"""Replication factors, racks, leaders and files of the operator's own, checked by eye."""

from __future__ import annotations

from typing import Any

import pytest

from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.kafka_json import reassignment_json, rollback_json
from rehome.domain.plan.move import MoveReason
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import ROWS, THREE_RACKS, T, both, plan, problems
from tests.planning.stored_clusters import Stored


def test_more_replicas_keep_the_leader_and_the_order_and_go_to_other_racks() -> None:
    made = plan(
        cluster(THREE_RACKS, [(2, 0), (3, 5)]),
        action="set_replication_factor",
        replication_factor=3,
    )
    assert [move.target[:2] for move in made.moves] == [(2, 0), (3, 5)]
    assert made.moves[0].target[2] in (4, 5)
    assert made.moves[1].target[2] in (0, 1)
    assert made.allow_replication_factor_change
    assert made.summary.bytes_to_move == made.summary.lower_bound_bytes == 200


def test_fewer_replicas_keep_the_leader_and_stay_apart() -> None:
    of = cluster(THREE_RACKS, [(0, 1, 2), (4, 5, 0)])
    made = plan(of, action="set_replication_factor", replication_factor=2)
    assert [move.target for move in made.moves] == [(0, 2), (4, 0)]
    assert made.summary.bytes_to_move == 0
    assert why_text(made.moves[0]) == "Replication factor 3 becomes 2; leaves broker 1."


def test_of_replicas_out_of_sync_the_offline_ones_go_first() -> None:
    """Kafka takes no target with a dead broker: here it leads, and no broker is of its set."""
    of = cluster([""] * 4, [(0, 1, 2)], dead=frozenset({0}), lagging=frozenset({(T[0], 1)}))
    sets = [{"name": "s", "topics": ["t"], "brokers": [3]}]
    made = plan(of, action="set_replication_factor", replication_factor=2, broker_sets=sets)
    assert [set(move.target) for move in made.moves] == [{1, 2}]


def test_fewer_replicas_are_even_on_upper_levels_of_the_racks_first() -> None:
    """Without a replica on the full brokers 3 and 4 the lower level is more even."""
    racks = ["/b/z", "/b/z", "/b/z", "/a/x", "/a/x", "/a/y", "/a/y"]
    of = both(cluster(racks, [(0, 1, 3, 2, 4)]), cluster(racks, [(3, 4)] * 9, topic="u"))
    made = plan(of, action="set_replication_factor", replication_factor=4, topics=["t"])
    (move,) = made.moves
    assert {3, 4} <= set(move.target)


def test_more_replicas_than_brokers_are_refused() -> None:
    of = cluster(THREE_RACKS, ROWS)
    text = problems(of, action="set_replication_factor", replication_factor=7)
    assert "t-0 is to have 7 replicas; live brokers: 6." in text


def test_racks_are_repaired_with_the_fewest_copies() -> None:
    made = plan(cluster(THREE_RACKS, [(0, 1, 2), (0, 2, 4)]), action="repair_racks")
    assert [move.partition for move in made.moves] == [T[0]]
    assert made.moves[0].reason is MoveReason.RACK
    assert len(made.moves[0].adding) == 1
    assert (made.summary.rack_violations_before, made.summary.rack_violations_after) == (1, 0)


def test_leaders_are_balanced_without_any_data() -> None:
    made = plan(cluster([""] * 3, [(0, 1, 2)] * 9), action="balance_leaders")
    assert [load.leaders_after for load in made.summary.brokers] == [3, 3, 3]
    assert made.summary.bytes_to_move == 0
    assert {move.reason for move in made.moves} == {MoveReason.LEADER}


def reassign(of: Cluster | Stored, *entries: dict[str, Any]) -> dict[str, Any]:
    parts = [{"topic": "t", "partition": 0, "replicas": [1, 2]} | entry for entry in entries]
    return {"action": "reassign", "reassignment": {"version": 1, "partitions": parts}}


def test_a_reassignment_is_done_as_written() -> None:
    of = cluster([""] * 4, [(0, 1), (1, 2), (2, 3)])
    made = plan(
        of,
        **reassign(
            of,
            {"replicas": [3, 1]},
            {"partition": 1, "replicas": [2, 1]},
            {"partition": 2, "replicas": [2, 3]},
        ),
    )
    assert [(move.partition, move.target, move.reason) for move in made.moves] == [
        (T[0], (3, 1), MoveReason.REQUESTED),
        (T[1], (2, 1), MoveReason.LEADER),
    ]


def test_log_dirs_of_a_reassignment_are_kept_where_they_mean_a_change() -> None:
    of = cluster([""] * 3, [(0, 1), (1, 2)])
    made = plan(
        of,
        **reassign(
            of,
            {"replicas": [0, 2], "log_dirs": ["/data/0", "/data/2"]},
            {"partition": 1, "replicas": [1, 2], "log_dirs": ["/data/1", "any"]},
        ),
    )
    assert [(m.partition, m.target_log_dirs) for m in made.moves] == [(T[0], ("any", "/data/2"))]
    assert reassignment_json(made.moves)["partitions"][0]["log_dirs"] == ["any", "/data/2"]
    assert rollback_json(made.moves)["partitions"][0] == {
        "topic": "t",
        "partition": 0,
        "replicas": [0, 1],
        "log_dirs": ["/data/0", "/data/1"],
    }


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"topic": "nope"}, "Unknown topic 'nope'."),
        ({"partition": 9}, "Unknown partition t-9."),
        ({"replicas": [1, 9]}, "t-0: unknown broker 9."),
        ({"replicas": [1, 3]}, "t-0: broker 3 is not live."),
        ({"replicas": [1]}, "would change from 2 to 1"),
        ({"replicas": [0, 1, 2]}, "would change from 2 to 3"),
        ({"log_dirs": ["/nope", "any"]}, "t-0: broker 1 has no usable log dir '/nope'."),
    ],
)
def test_a_reassignment_the_cluster_contradicts_is_refused(
    entry: dict[str, Any], problem: str
) -> None:
    of = cluster([""] * 4, [(0, 1)], dead=frozenset({3}))
    assert problem in problems(of, **reassign(of, entry))


def test_a_reassignment_to_what_is_cordoned_is_refused() -> None:
    of = cluster([""] * 3, [(0, 1)], cordoned=frozenset({1, 2}))
    problem = "t-0: broker 2 takes no new replicas: all its log dirs are offline or cordoned."
    assert problems(of, **reassign(of, {"replicas": [0, 2]})) == problem
    assert plan(of, **reassign(of, {"replicas": [1, 0]})).moves  # both are there already
    stored = Stored({(0, "/a"): {0: 10}, (0, "/b"): {}}, cordoned=frozenset({(0, "/b")}))
    problem = "t-0: log dir '/b' of broker 0 is cordoned and takes no replicas."
    assert problems(stored, **reassign(of, {"replicas": [0], "log_dirs": ["/b"]})) == problem


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"replicas": [0, 3]}, ""),  # as it is
        ({"replicas": [3, 0]}, "t-0: broker 3 is not live."),  # a dead leader is preferred
        ({"replicas": [1, 3]}, "t-0: broker 3 is not live."),  # its copy would wait for broker 3
        ({"partition": 1, "replicas": [3, 0, 1]}, ""),  # it was preferred before
        ({"partition": 1, "replicas": [0, 3, 1]}, ""),  # this makes it better
        ({"partition": 1, "replicas": [1, 0]}, "would change from 3 to 2"),
    ],
)
def test_a_dead_broker_keeps_what_it_has_where_nothing_is_copied(
    entry: dict[str, Any], problem: str
) -> None:
    of = cluster([""] * 4, [(0, 3), (3, 1, 0)], dead=frozenset({3}))
    if problem:
        assert problem in problems(of, **reassign(of, entry))
    else:
        assert {move.target for move in plan(of, **reassign(of, entry)).moves} <= {
            tuple(entry["replicas"])
        }


def test_a_file_gives_partitions_more_and_fewer_replicas_where_the_request_allows_it() -> None:
    of = cluster([""] * 5, [(0, 1), (1, 2, 3), (2, 3), (0, 1, 2)])
    asked = reassign(
        of,
        {"replicas": [0, 1, 4]},
        {"partition": 1, "replicas": [3]},
        {"partition": 2, "replicas": [4, 2]},
        {"partition": 3, "replicas": [3, 4]},
    )
    made = plan(of, **asked, allow_replication_factor_change=True)
    assert [move.target for move in made.moves] == [(0, 1, 4), (3,), (4, 2), (3, 4)]
    assert made.allow_replication_factor_change
    assert rollback_json(made.moves)["partitions"][1]["replicas"] == [1, 2, 3]
    text = problems(of, **asked)
    assert "t-0: the replication factor would change from 2 to 3; give" in text
    assert "t-1: the replication factor would change from 3 to 1; give" in text


def test_what_is_allowed_and_not_done_leaves_kafkas_guard_on() -> None:
    of = cluster([""] * 3, [(0, 1)])
    asked = reassign(of, {"replicas": [0, 2]})
    made = plan(of, **asked, allow_replication_factor_change=True)
    assert not made.allow_replication_factor_change
    assert made.plan_hash == plan(of, **asked).plan_hash


@pytest.mark.parametrize(
    ("replicas", "refused"),
    [([2], True), ([0, 2], True), ([0, 1], False), ([0, 3], False), ([3], False), ([3, 4], False)],
)
def test_a_file_with_fewer_replicas_keeps_those_in_sync(replicas: list[int], refused: bool) -> None:
    of = cluster([""] * 5, [(0, 1, 2)], lagging=frozenset({(T[0], 2)}))
    asked = reassign(of, {"replicas": replicas}) | {"allow_replication_factor_change": True}
    if refused:
        assert "t-0 would give up replicas that are in sync" in problems(of, **asked)
    else:
        assert [move.target for move in plan(of, **asked).moves] == [tuple(replicas)]


def test_all_that_is_wrong_with_a_reassignment_is_listed() -> None:
    of = cluster([""] * 3, [(0, 1)])
    text = problems(of, **reassign(of, {"replicas": [7, 8]}, {"topic": "nope", "partition": 3}))
    assert all(part in text for part in ("broker 7", "broker 8", "'nope'"))


def test_a_reassignment_ignores_racks_on_request() -> None:
    of = cluster(["/a", "/a", ""], [(0, 1)])
    asked = reassign(of, {"replicas": [1, 2]})
    assert plan(of, **asked).moves, "its brokers are the operator's choice"
    summary = plan(of, **asked, ignore_racks=True).summary
    assert (summary.rack_violations_before, summary.rack_violations_after) == (0, 0)
    assert summary.links == ()


def test_a_reassignment_that_does_not_fit_on_the_disk_is_refused() -> None:
    of = cluster([""] * 3, [(0, 1)], disks=dict.fromkeys(range(3), (1000, 99)))
    text = problems(of, **reassign(of, {"replicas": [0, 2]}))
    assert "Broker 2 would receive 100 bytes, but its log dirs have room for 99." in text


def test_a_reassignment_of_a_partition_in_flight_is_refused() -> None:
    of = cluster(
        [""] * 3, [(0, 1, 2)], adding=frozenset({(T[0], 1)}), removing=frozenset({(T[0], 2)})
    )
    text = problems(of, **reassign(of, {"replicas": [0, 2]}))
    assert "t-0 is being reassigned already" in text
