"""Elections of preferred leaders, against a checker in plain Python."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.infeasible_text import infeasible_text
from rehome.domain.plan.move import MoveReason
from tests.examples import examples
from tests.planning.actions.test_demote import ailing, in_sync, leader
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import T, both, infeasible, plan


def test_only_what_another_replica_leads_is_elected_and_nothing_moves() -> None:
    of = cluster([""] * 3, [(0, 1), (1, 2), (2, 0)])
    made = plan(replace(of, leaders={T[0]: 1, T[2]: 0}), action="elect_preferred")
    assert [(m.partition, m.current, m.target, m.reason) for m in made.moves] == [
        (T[0], (0, 1), (0, 1), MoveReason.ELECTION),
        (T[2], (2, 0), (2, 0), MoveReason.ELECTION),
    ]
    assert (made.summary.elections, made.summary.leader_changes) == (2, 0)
    assert made.summary.bytes_to_move == 0
    assert why_text(made.moves[0]) == (
        "Broker 0 is its preferred leader and in sync, but broker 1 leads it. Nothing is copied."
    )


def test_a_preferred_leader_out_of_sync_is_named() -> None:
    of = cluster([""] * 2, [(0, 1)], lagging=frozenset({(T[0], 0)}))
    made = plan(of, action="elect_preferred")
    assert made.moves == ()
    assert [infeasible_text(item) for item in infeasible(made)] == [
        "t-0: its preferred leader is not in sync and cannot lead now: left alone "
        "(wanted 1, nearest 0)"
    ]


def test_internal_topics_are_elected_too_and_topics_narrow_it_down() -> None:
    inner = cluster([""] * 2, [(0, 1)], topic="__x", internal=frozenset({"__x"}))
    of = both(cluster([""] * 2, [(0, 1)]), inner)
    of = replace(of, leaders=dict.fromkeys((T[0], TopicPartition("__x", 0)), 1))
    assert len(plan(of, action="elect_preferred").moves) == 2
    assert [m.partition for m in plan(of, action="elect_preferred", topics=["t"]).moves] == [T[0]]
    without = plan(of, action="elect_preferred", exclude_topics=["t"]).moves
    assert [m.partition.topic for m in without] == ["__x"]


@examples(100)
@given(of=ailing())
def test_whatever_the_cluster_is_like_the_preferred_replica_leads_where_it_can(of: Cluster) -> None:
    made = plan(of, action="elect_preferred")
    elected = {move.partition for move in made.moves}
    named = {item.subject.name: item.obstacle for item in infeasible(made)}
    for partition, row in of.replicas.items():
        able, leads = row[0] in in_sync(of, partition), leader(of, partition) == row[0]
        assert (partition in elected) == (able and not leads)
        assert (str(partition) in named) == (not able and not leads)
    assert set(named.values()) <= {Obstacle.PREFERRED_OUT_OF_SYNC}
    assert all(move.target == move.current for move in made.moves)
