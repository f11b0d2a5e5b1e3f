"""What each action does on clusters small enough to check by eye."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.cluster.model import TopicPartition
from include.errors import InvalidRequestError
from include.planning.kafka_json import reassignment_json, rollback_json
from include.planning.plan import MoveReason
from include.planning.planner import make_plan
from include.planning.request import parse_request
from include.planning.rollback import rollback_plan
from tests.planning.clusters import Cluster, cluster

GB = 10**9
THREE_RACKS = ["/r0", "/r0", "/r1", "/r1", "/r2", "/r2"]
ROWS = [(0, 2, 4), (1, 3, 5), (2, 4, 0), (3, 5, 1), (4, 0, 2), (5, 1, 3)]
T = [TopicPartition("t", number) for number in range(8)]


def plan(of: Cluster, *, rate=None, efficiency=1.0, min_free=0.0, **params):
    return make_plan(
        of.snapshot(),
        parse_request(params),
        plan_id="p",
        rate_bytes_per_s=rate,
        throttle_efficiency=efficiency,
        min_free_disk_fraction=min_free,
    )


def problems(of: Cluster, **params) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        plan(of, **params)
    return " ".join(refused.value.problems)


def both(first: Cluster, second: Cluster) -> Cluster:
    """Two clusters of the same brokers as one."""
    return replace(
        first,
        replicas={**first.replicas, **second.replicas},
        sizes={**first.sizes, **second.sizes},
        internal=first.internal | second.internal,
    )


# ---------------------------------------------------------------- drain


def test_a_drained_brokers_replicas_go_to_its_rack_and_nothing_else_moves():
    made = plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[0])
    assert {move.partition: move.target for move in made.moves} == {
        T[0]: (2, 1, 4),
        T[2]: (2, 4, 1),
        T[4]: (4, 1, 2),
    }
    assert {move.reason for move in made.moves} == {MoveReason.DRAIN}
    assert made.moves[0].why.startswith("Broker 0 is drained; broker 1")
    assert made.summary.bytes_to_move == made.summary.lower_bound_bytes == 300
    assert made.summary.rack_violations_after == 0


def test_a_drain_prediction_counts_the_busiest_broker_at_the_rate_that_is_really_delivered():
    made = plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[0], rate=10, efficiency=0.5)
    assert made.summary.predicted_s == pytest.approx(300 / 5)  # all of it goes into broker 1
    out = {load.broker: load.bytes_out for load in made.summary.brokers}
    assert out == {0: 100, 1: 0, 2: 100, 3: 0, 4: 100, 5: 0}  # from the leaders
    assert plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[0]).summary.predicted_s is None


def test_leaderships_lost_in_a_drain_are_spread_evenly():
    rows = [(0, 1 + i % 3) for i in range(12)]
    made = plan(cluster([""] * 4, rows), action="drain", brokers=[0])
    leaders = [load.leaders_after for load in made.summary.brokers]
    assert leaders == [0, 4, 4, 4]
    assert made.summary.leader_changes == 12


def test_empty_partitions_are_spread_in_a_drain_too():
    rows = [(0,)] * 30
    made = plan(cluster([""] * 4, rows, sizes=0), action="drain", brokers=[0])
    assert [load.replicas_after for load in made.summary.brokers] == [0, 10, 10, 10]


def test_a_drain_takes_internal_topics_along():
    offsets = cluster([""] * 3, [(0, 1)], topic="__consumer_offsets")
    of = replace(offsets, internal=frozenset({"__consumer_offsets"}))
    assert plan(of, action="drain", brokers=[0]).moves[0].target == (1, 2)


def test_a_dead_broker_can_be_drained():
    of = cluster([""] * 3, [(0, 1), (1, 2)], sizes=50, dead=frozenset({0}))
    made = plan(of, action="drain", brokers=[0])
    assert [(move.partition, move.target, move.size_bytes) for move in made.moves] == [
        (T[0], (2, 1), 50)
    ]


def test_draining_a_whole_rack_spreads_over_the_racks_that_are_left():
    made = plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[4, 5])
    assert made.summary.rack_violations_after == 0
    assert all({0, 1} & set(m.target) and {2, 3} & set(m.target) for m in made.moves)


def test_the_drain_repairs_the_racks_of_partitions_that_move_anyway():
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
        ([0, 1, 2, 3], "3 replicas, but there are only 2 live brokers left"),
    ],
)
def test_a_drain_that_cannot_be_is_refused(brokers, problem):
    assert problem in problems(cluster(THREE_RACKS, ROWS), action="drain", brokers=brokers)


def test_a_drain_does_not_supersede_a_reassignment_that_is_running():
    of = cluster(THREE_RACKS, ROWS, adding=frozenset({(T[0], 0)}))
    assert "t-0 is being reassigned already" in problems(of, action="drain", brokers=[0])


def test_a_drain_with_topics_hidden_from_us_is_refused():
    of = cluster([""] * 3, [(0,)], hidden_topics=("secret",))
    assert "secret" in problems(of, action="drain", brokers=[0])


def test_a_partition_without_a_leader_cannot_be_drained():
    of = cluster([""] * 3, [(0,)], dead=frozenset({0}))
    assert "t-0 has no leader to copy from" in problems(of, action="drain", brokers=[0])


def test_a_drain_does_not_touch_a_partition_that_has_a_replica_on_another_dead_broker():
    of = cluster([""] * 4, [(0, 1)], dead=frozenset({1}))
    assert "not live: bring it back or drain it" in problems(of, action="drain", brokers=[0])
    assert plan(of, action="drain", brokers=[0, 1]).moves[0].target == (2, 3)


# ---------------------------------------------------------------- disks


def test_no_broker_gets_more_than_its_disk_holds():
    disks = {0: (1000, 0), 1: (1000, 150), 2: (1000, 500)}
    of = cluster([""] * 3, [(0,)] * 4, disks=disks)
    after = [load.replicas_after for load in plan(of, action="drain", brokers=[0]).summary.brokers]
    assert after == [0, 1, 3]


def test_disks_too_small_for_a_drain_are_refused():
    disks = {0: (1000, 0), 1: (1000, 150), 2: (1000, 150)}
    of = cluster([""] * 3, [(0,)] * 4, disks=disks)
    assert "have the disk space" in problems(of, action="drain", brokers=[0])


def test_the_part_of_a_disk_that_must_stay_free_stays_free():
    disks = {0: (1000, 500), 1: (1000, 150), 2: (1000, 500)}
    of = cluster([""] * 3, [(0,), (2,)], disks=disks)
    assert plan(of, action="drain", brokers=[0]).moves[0].target == (1,)
    assert plan(of, action="drain", brokers=[0], min_free=0.1).moves[0].target == (2,)


def test_a_full_rack_is_left_out_and_the_summary_counts_the_uneven_partition():
    disks = {0: (1000, 500), 1: (1000, 0), 2: (1000, 500), 3: (1000, 500)}
    of = cluster(["/r0", "/r0", "/r1", "/r1"], [(0, 2)], disks=disks)
    made = plan(of, action="drain", brokers=[0])
    assert made.moves[0].target in ((2, 3), (3, 2))
    assert made.summary.rack_violations_after == 1


def test_cordoned_brokers_keep_what_they_have_and_get_nothing():
    of = cluster([""] * 4, [(0, 1)] * 4, cordoned=frozenset({1, 2}))
    made = plan(of, action="drain", brokers=[0])
    assert {frozenset(move.target) for move in made.moves} == {frozenset({1, 3})}


# ---------------------------------------------------------------- rebalance


def test_a_new_broker_is_filled_with_the_fewest_bytes():
    of = cluster([""] * 4, [(broker,) for broker in (0, 1, 2)] * 20)
    made = plan(of, action="rebalance")
    assert [load.size_bytes_after for load in made.summary.brokers] == [1500] * 4
    assert made.summary.bytes_to_move == 1500
    assert 1450 <= made.summary.lower_bound_bytes <= 1500
    assert made.summary.infeasible == ()


def test_a_balanced_cluster_is_left_alone():
    made = plan(cluster(THREE_RACKS, ROWS), action="rebalance")
    assert made.moves == ()
    assert made.summary.lower_bound_bytes == 0


def test_brokers_are_filled_in_proportion_to_their_disks():
    disks = {0: (10_000, 9_000), 1: (20_000, 20_000), 2: (10_000, 10_000)}
    of = cluster([""] * 3, [(0,)] * 40, disks=disks)
    after = [load.size_bytes_after for load in plan(of, action="rebalance").summary.brokers]
    assert after == [1000, 2000, 1000]


def test_only_the_named_brokers_take_part():
    of = cluster([""] * 4, [(0,)] * 20 + [(3,)] * 4)
    made = plan(of, action="rebalance", brokers=[0, 1])
    after = [load.size_bytes_after for load in made.summary.brokers]
    assert after == [1000, 1000, 0, 400]


def test_only_the_named_topics_move_and_patterns_do_not_reach_internal_ones():
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


def test_a_partition_larger_than_a_brokers_share_is_named():
    made = plan(cluster([""] * 3, [(0,)] * 3, sizes=[10, 10, 100]), action="rebalance")
    assert any("t-2 (100 B) is larger than its share" in i.constraint for i in infeasible(made))


def test_a_rack_that_must_hold_more_than_its_fair_share_is_named():
    racks = ["/small"] + ["/large"] * 3
    of = cluster(racks, [(0, 1 + i % 3) for i in range(9)])
    made = plan(of, action="rebalance")
    assert made.moves == ()
    named = [item for item in infeasible(made) if item.subject == "rack /small"]
    assert [(item.wanted, item.nearest) for item in named] == [(450.0, 900.0)]
    assert "even spread over racks" in named[0].constraint


def test_replicas_out_of_scope_that_exceed_the_share_are_named():
    a, b = (cluster([""] * 2, [(0,)] * n, topic=name) for n, name in ((8, "a"), (2, "b")))
    made = plan(both(a, b), action="rebalance", topics=["b"])
    assert [move.target for move in made.moves] == [(1,), (1,)]
    assert any("may not move" in item.constraint for item in infeasible(made))


def test_partitions_in_flight_are_left_alone_and_named():
    of = cluster([""] * 2, [(0,)] * 10, adding=frozenset({(T[3], 0)}))
    made = plan(of, action="rebalance")
    assert T[3] not in made.by_partition
    assert any(item.subject == "t-3" for item in infeasible(made))


def test_a_rebalance_repairs_the_racks_of_what_it_moves_and_only_of_that():
    racks = ["/a", "/a", "/a", "/b", "/c"]
    rows = [(0, 1, 2), (0,), (0,), (1,), (2,), (3,), (3,), (4,)]
    made = plan(cluster(racks, rows), action="rebalance")
    assert {racks[broker] for broker in made.by_partition[T[0]].target} == {"/a", "/b", "/c"}
    assert [load.size_bytes_after for load in made.summary.brokers] == [200] * 5
    assert plan(cluster(racks[:4], [(0, 1, 2), (3,)]), action="rebalance").moves == ()


def test_a_rebalance_keeps_replicas_apart_where_their_racks_are_free_to_change():
    made = plan(cluster(THREE_RACKS, [(0, 2)] * 9), action="rebalance", tolerance=0.1)
    assert [load.size_bytes_after for load in made.summary.brokers] == [300] * 6
    assert made.summary.rack_violations_after == 0


def test_a_rebalance_fills_a_disk_no_further_than_it_holds_and_names_it():
    of = cluster([""] * 2, [(0,)] * 20, disks={0: (10_000, 8_000), 1: (10_000, 350)})
    made = plan(of, action="rebalance")
    assert [load.size_bytes_after for load in made.summary.brokers] == [1700, 300]
    named = [item.constraint for item in infeasible(made) if item.subject == "broker 1"]
    assert "the broker's disk does not hold its share" in named


def test_some_brokers_with_a_rack_and_some_without_are_refused():
    of = cluster(["/a", "/b", ""], [(0,)])
    assert "Brokers 2 have no rack while others do" in problems(of, action="rebalance")


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"topics": ["nope"]}, "Unknown topic 'nope'."),
        ({"topics": ["x*"]}, "No topic matches the pattern 'x*'."),
        ({"brokers": [7]}, "Unknown broker 7."),
    ],
)
def test_a_rebalance_of_what_does_not_exist_is_refused(params, problem):
    of = cluster(THREE_RACKS, ROWS)
    assert problem in problems(of, action="rebalance", **params)


def test_a_rebalance_is_refused_while_a_broker_that_holds_replicas_is_dead():
    of = cluster(THREE_RACKS, ROWS, dead=frozenset({5}))
    assert "t-1 has a replica on a broker that is not live" in problems(of, action="rebalance")


# ---------------------------------------------------------------- the other actions


def test_more_replicas_keep_the_leader_and_the_order_and_go_to_other_racks():
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


def test_fewer_replicas_keep_the_leader_and_stay_apart():
    of = cluster(THREE_RACKS, [(0, 1, 2), (4, 5, 0)])
    made = plan(of, action="set_replication_factor", replication_factor=2)
    assert [move.target for move in made.moves] == [(0, 2), (4, 0)]
    assert made.summary.bytes_to_move == 0
    assert made.moves[0].why == "Replication factor 3 becomes 2; leaves broker 1."


def test_more_replicas_than_brokers_are_refused():
    of = cluster(THREE_RACKS, ROWS)
    text = problems(of, action="set_replication_factor", replication_factor=7)
    assert "t-0 is to have 7 replicas, but there are only 6 live brokers." in text


def test_racks_are_repaired_with_the_fewest_copies():
    made = plan(cluster(THREE_RACKS, [(0, 1, 2), (0, 2, 4)]), action="repair_racks")
    assert [move.partition for move in made.moves] == [T[0]]
    assert made.moves[0].reason is MoveReason.RACK
    assert len(made.moves[0].adding) == 1
    assert (made.summary.rack_violations_before, made.summary.rack_violations_after) == (1, 0)


def test_leaders_are_balanced_without_any_data():
    made = plan(cluster([""] * 3, [(0, 1, 2)] * 9), action="balance_leaders")
    assert [load.leaders_after for load in made.summary.brokers] == [3, 3, 3]
    assert made.summary.bytes_to_move == 0
    assert {move.reason for move in made.moves} == {MoveReason.LEADER}


def reassign(of, *entries):
    parts = [{"topic": "t", "partition": 0, "replicas": [1, 2]} | entry for entry in entries]
    return {"action": "reassign", "reassignment": {"version": 1, "partitions": parts}}


def test_a_reassignment_is_done_as_written():
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


def test_log_dirs_of_a_reassignment_are_kept_where_they_mean_a_change():
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
def test_a_reassignment_the_cluster_contradicts_is_refused(entry, problem):
    of = cluster([""] * 4, [(0, 1)], dead=frozenset({3}))
    assert problem in problems(of, **reassign(of, entry))


def test_all_that_is_wrong_with_a_reassignment_is_listed():
    of = cluster([""] * 3, [(0, 1)])
    text = problems(of, **reassign(of, {"replicas": [7, 8]}, {"topic": "nope", "partition": 3}))
    assert all(part in text for part in ("broker 7", "broker 8", "'nope'"))


def test_a_reassignment_that_does_not_fit_on_the_disk_is_refused():
    of = cluster([""] * 3, [(0, 1)], disks=dict.fromkeys(range(3), (1000, 99)))
    text = problems(of, **reassign(of, {"replicas": [0, 2]}))
    assert "Broker 2 would receive 100 bytes, but its log dirs have room for 99." in text


def test_a_reassignment_of_a_partition_in_flight_is_refused():
    of = cluster(
        [""] * 3, [(0, 1, 2)], adding=frozenset({(T[0], 1)}), removing=frozenset({(T[0], 2)})
    )
    text = problems(of, **reassign(of, {"replicas": [0, 2]}))
    assert "t-0 is being reassigned already" in text


def test_move_log_dirs_says_how_it_is_done_today():
    text = problems(cluster([""] * 2, [(0,)]), action="move_log_dirs")
    assert "reassign with log_dirs" in text


# ---------------------------------------------------------------- rollback


def test_a_rollback_restores_replicas_order_and_replication_factor():
    of = cluster(THREE_RACKS, ROWS)
    made = plan(of, action="set_replication_factor", replication_factor=2)
    after = of.after(made)
    back = rollback_plan(made.moves, after.snapshot(), plan_id="back")
    assert after.after(back).replicas == {p: tuple(row) for p, row in of.replicas.items()}
    assert back.allow_replication_factor_change
    assert {move.reason for move in back.moves} == {MoveReason.ROLLBACK}


def test_a_rollback_takes_replicas_back_to_their_log_dirs():
    of = cluster([""] * 3, [(0, 1)])
    made = plan(of, action="drain", brokers=[0])
    back = rollback_plan(made.moves, of.after(made).snapshot(), plan_id="back")
    assert back.moves[0].target == (0, 1)
    assert back.moves[0].target_log_dirs == ("/data/0", "any")


def test_a_rollback_of_what_was_never_started_is_empty():
    of = cluster([""] * 3, [(0, 1)])
    made = plan(of, action="drain", brokers=[0])
    assert rollback_plan(made.moves, of.snapshot(), plan_id="back").moves == ()


def test_a_rollback_leaves_alone_and_names_what_somebody_else_has_changed_since():
    of = cluster([""] * 4, [(0, 1), (0, 1), (0, 1)])
    made = plan(of, action="drain", brokers=[0])
    after = of.after(made)
    replicas = dict(after.replicas) | {T[0]: (3, 2)}
    del replicas[T[1]]
    since = replace(after, replicas=replicas)
    back = rollback_plan(made.moves, since.snapshot(), plan_id="back")
    assert [move.partition for move in back.moves] == [T[2]]
    assert {item.subject for item in infeasible(back)} == {"t-0", "t-1"}


def test_a_rollback_to_a_dead_broker_is_refused():
    of = cluster([""] * 3, [(0, 1)])
    made = plan(of, action="drain", brokers=[0])
    since = replace(of.after(made), dead=frozenset({0}))
    with pytest.raises(InvalidRequestError, match="broker 0 is not live"):
        rollback_plan(made.moves, since.snapshot(), plan_id="back")


def infeasible(made):
    return made.summary.infeasible
