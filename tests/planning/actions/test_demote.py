"""Demoted brokers lead nothing; checked by rules of plain Python and by a mixed-integer solver."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.infeasible_text import infeasible_text
from rehome.domain.plan.move import MoveReason
from rehome.domain.plan.plan import Plan
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import T, both, infeasible, plan, problems
from tests.planning.strategies import clusters


def targets(made: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    return {move.partition: move.target for move in made.moves}


def test_others_lead_by_share_and_the_demoted_broker_comes_last() -> None:
    of = cluster([""] * 4, [(0, 1, 2)] * 2 + [(0, 3, 1)] + [(1, 2, 3), (2, 3, 0)])
    made = plan(of, action="demote", brokers=[0])
    assert targets(made) == {T[0]: (1, 2, 0), T[1]: (2, 1, 0), T[2]: (3, 1, 0)}
    assert {move.reason for move in made.moves} == {MoveReason.LEADER}
    assert made.summary.bytes_to_move == made.summary.lower_bound_bytes == 0
    assert made.summary.leader_changes == 3
    assert why_text(made.moves[0]) == (
        "Broker 0 is demoted; broker 1 has its data in sync and leads it. Nothing is copied."
    )


def test_a_chain_of_changes_evens_out_what_no_single_change_could() -> None:
    """Partition after partition, broker 1 gets two and broker 3 none."""
    of = cluster([""] * 4, [(0, 1, 2), (0, 2, 3), (0, 1, 2)])
    made = plan(of, action="demote", brokers=[0])
    assert sorted(row[0] for row in targets(made).values()) == [1, 2, 3]


def test_a_partition_that_only_waits_for_an_election_is_elected() -> None:
    """Broker 1 is preferred and in sync, but broker 0 leads: another order would not help."""
    of = cluster([""] * 3, [(1, 0), (1, 0)], lagging=frozenset({(T[0], 1)}))
    made = plan(of, action="demote", brokers=[0])
    assert made.moves == ()
    assert [item.obstacle for item in infeasible(made)] == [Obstacle.NO_OTHER_LEADER]
    led = replace(of, lagging=frozenset(), leaders={T[0]: 0})
    made = plan(led, action="demote", brokers=[0])
    assert [(m.partition, m.target, m.reason) for m in made.moves] == [
        (T[0], (1, 0), MoveReason.ELECTION)
    ]
    assert (made.summary.elections, made.summary.leader_changes) == (1, 0)
    assert why_text(made.moves[0]) == (
        "Broker 0 is demoted; broker 1, which is preferred already, is elected. Nothing is copied."
    )


def test_a_partition_that_no_other_broker_can_lead_is_named_and_stays() -> None:
    of = cluster(
        [""] * 3,
        [(0,), (0, 1), (0, 1, 2)],
        lagging=frozenset({(T[1], 1), (T[2], 1)}),
    )
    made = plan(of, action="demote", brokers=[0])
    assert targets(made) == {T[2]: (2, 1, 0)}
    assert [infeasible_text(item) for item in infeasible(made)] == [
        f"t-{number}: no broker that is not demoted has a replica of it in sync: it keeps its "
        "leader (wanted 1, nearest 0)"
        for number in (0, 1)
    ]


def test_an_offline_replica_is_no_obstacle_for_nothing_is_copied() -> None:
    """Another broker is dead, the demoted broker itself is, or a log dir has failed."""
    rows = [(0, 1, 2), (0, 2, 1)]
    of = cluster([""] * 3, rows, dead=frozenset({1}))
    made = plan(of, action="demote", brokers=[0])
    assert targets(made) == {T[0]: (2, 1, 0), T[1]: (2, 1, 0)}
    assert infeasible(made) == ()
    itself = plan(replace(of, dead=frozenset({0})), action="demote", brokers=[0])
    assert targets(itself) == {T[0]: (1, 2, 0), T[1]: (2, 1, 0)}
    failed = cluster([""] * 3, rows, failed=frozenset({(T[0], 1)}))
    assert targets(plan(failed, action="demote", brokers=[0]))[T[0]][0] == 2


def test_internal_topics_are_demoted_too_unless_topics_are_named() -> None:
    inner = cluster([""] * 2, [(0, 1)], topic="__x", internal=frozenset({"__x"}))
    of = both(cluster([""] * 2, [(0, 1)]), inner)
    assert len(plan(of, action="demote", brokers=[0]).moves) == 2
    assert list(targets(plan(of, action="demote", brokers=[0], topics=["*"]))) == [T[0]]


def test_what_leaders_send_counts_where_it_is_known() -> None:
    of = cluster([""] * 3, [(0, 1, 2)] * 4)
    sends = {T[0]: 900.0, T[1]: 300.0, T[2]: 300.0, T[3]: 300.0}
    made = plan(replace(of, bytes_out=sends, bytes_in=sends), action="demote", brokers=[0])
    heavy = targets(made)[T[0]][0]
    assert [p for p, row in targets(made).items() if row[0] == heavy] == [T[0]]


def test_larger_brokers_lead_more() -> None:
    of = cluster([""] * 3, [(0, 1, 2)] * 9)
    made = plan(of, action="demote", brokers=[0], weights={"1": 2})
    assert Counter(row[0] for row in targets(made).values()) == {1: 6, 2: 3}


def test_a_demotion_of_everybody_is_refused() -> None:
    of = cluster([""] * 2, [(0, 1)])
    text = problems(of, action="demote", brokers=[0, 1])
    assert "No live broker is left to lead" in text
    assert "needs brokers" in problems(of, action="demote")


def test_a_balance_of_leaders_takes_it_back() -> None:
    of = cluster([""] * 3, [(0, 1, 2), (1, 2, 0), (2, 0, 1)] * 3)
    after = of.after(plan(of, action="demote", brokers=[0]))
    assert not any(row[0] == 0 for row in after.replicas.values())
    back = after.after(plan(after, action="balance_leaders"))
    assert Counter(row[0] for row in back.replicas.values()) == {0: 3, 1: 3, 2: 3}


@st.composite
def ailing(draw: st.DrawFn) -> Cluster:
    """A cluster with replicas that lag, partitions led by others, and maybe a dead broker."""
    of = draw(clusters())
    replicas = [(p, broker) for p, row in of.replicas.items() for broker in row]
    lagging = frozenset(draw(st.lists(st.sampled_from(replicas), max_size=6)))
    dead = frozenset(draw(st.sets(st.sampled_from(sorted(of.racks)), max_size=1)))
    of = replace(of, lagging=lagging, dead=dead)
    leaders: dict[TopicPartition, int] = {}
    for partition, row in of.replicas.items():
        synced = in_sync(of, partition)
        if bool(synced) and draw(st.booleans()):
            leaders[partition] = draw(st.sampled_from([b for b in row if b in synced]))
    return replace(of, leaders=leaders)


def in_sync(of: Cluster, partition: TopicPartition) -> set[int]:
    return {
        broker
        for broker in of.replicas[partition]
        if broker not in of.dead and (partition, broker) not in of.lagging
    }


def leader(of: Cluster, partition: TopicPartition) -> int | None:
    chosen = [b for b in of.replicas[partition] if b in in_sync(of, partition)]
    return of.leaders.get(partition, chosen[0] if chosen else None)


@pytest.mark.slow
@examples(200)
@given(of=ailing(), count=st.integers(1, 2))
def test_demoted_brokers_lead_and_prefer_nothing_that_others_could_lead(
    of: Cluster, count: int
) -> None:
    gone = set(sorted(of.racks)[:count])
    assume(set(of.racks) - gone - of.dead)
    made = plan(of, action="demote", brokers=sorted(gone))
    moved = {move.partition: move for move in made.moves}
    for partition, row in of.replicas.items():
        others = in_sync(of, partition) - gone
        sound = leader(of, partition) is not None
        meant = row[0] in gone or leader(of, partition) in gone
        assert (partition in moved) == (bool(others) and sound and meant)
        if partition in moved:
            target = moved[partition].target
            assert set(target) == set(row)
            assert target[0] in others
            assert target == tuple(row) or {*target[len(set(row) - gone) :]} == gone & set(row)
    named = {item.subject.name for item in infeasible(made)}
    for partition, row in of.replicas.items():
        sound = leader(of, partition) is not None
        meant = row[0] in gone or leader(of, partition) in gone
        if meant and sound and partition not in moved:
            assert str(partition) in named


def fewest_squares(of: Cluster, gone: set[int]) -> float:
    """The least sum over brokers of squares of partitions led, by a mixed-integer solver."""
    hosts = sorted(set(of.racks) - gone)
    fixed = Counter(row[0] for row in of.replicas.values() if row[0] not in gone)
    given_up = [row for row in of.replicas.values() if row[0] in gone and set(row) - gone]
    pairs = [(p, b) for p, row in enumerate(given_up) for b in row if b not in gone]
    steps = [(b, k) for b in hosts for k in range(len(given_up))]
    cost = [0.0] * len(pairs) + [2 * (fixed[b] + k) + 1 for b, k in steps]
    if not pairs:
        return float(sum(n * n for n in fixed.values()))
    one_each = [
        [float(q == p) for q, _ in pairs] + [0.0] * len(steps) for p in range(len(given_up))
    ]
    counted = [
        [float(b == host) for _, b in pairs] + [-float(b == host) for b, _ in steps]
        for host in hosts
    ]
    found = milp(
        cost,
        constraints=[
            LinearConstraint(np.array(one_each), 1, 1),
            LinearConstraint(np.array(counted), 0, 0),
        ],
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, 1),
    )
    return float(found.fun) + sum(n * n for n in fixed.values())


@examples(100)
@given(of=clusters(max_partitions=24))
def test_no_other_choice_of_leaders_is_more_even(of: Cluster) -> None:
    gone = {0}
    made = plan(of, action="demote", brokers=[0])
    after = of.after(made)
    led = Counter(row[0] for row in after.replicas.values() if row[0] not in gone)
    assert sum(n * n for n in led.values()) <= fewest_squares(of, gone) + 1e-6
