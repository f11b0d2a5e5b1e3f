"""Partitions that share the plan's brokers: which are watched, and what counts as strain."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import (
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.run.flows import Strain
from rehome.domain.run.observation import Observation
from rehome.execution.governor.cluster_health import WATCHED, bystanders, strain_of
from rehome.execution.observation.observe import observe
from tests.conftest import Topics
from tests.ledger.small_plans import make_plan, move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
TP = TopicPartition("others", 0)


def topic(name: str, *replicas: tuple[int, ...]) -> TopicDescription:
    states = {at: PartitionState(row[0], row, frozenset(row)) for at, row in enumerate(replicas)}
    return TopicDescription(name, name, False, states)


def test_only_some_partitions_that_share_two_brokers_with_the_plan_are_watched() -> None:
    plan = make_plan("p", move("mine", 0, (1, 2), (3, 2)))
    others = topic("others", (1, 2), (1, 9), (8, 9), (9, 3, 2))
    topics = {"mine": topic("mine", (1, 2)), "others": others}
    mine = TopicPartition("mine", 0)
    assert bystanders(plan, topics) == (TP, TopicPartition("others", 3), mine)
    many = {"many": topic("many", *[(1, 2)] * 3 * WATCHED)}
    assert len(bystanders(plan, many)) == WATCHED
    large = make_plan("p", *[move("many", number, (1, 2), (3, 2)) for number in range(WATCHED)])
    assert len(bystanders(large, many)) == 2 * WATCHED


def test_an_own_partition_that_loses_a_member_of_its_isr_counts() -> None:
    own = TopicPartition("mine", 0)
    moving = {own: OngoingReassignment((3, 2, 1), (3,), (1,))}
    well = Observation(
        T0,
        {},
        moving,
        frozenset({1, 2, 3}),
        bystanders={own: PartitionState(1, (3, 2, 1), frozenset({1, 2}))},
    )
    assert strain_of(well) == Strain(0, 0)
    lost = PartitionState(1, (3, 2, 1), frozenset({1}))
    assert strain_of(replace(well, bystanders={own: lost})) == Strain(1, 0)


def seen(isr: set[int], offsets: dict[int, int], live: tuple[int, ...] = (1, 2, 3)) -> Observation:
    return Observation(
        T0,
        {},
        {},
        frozenset(live),
        log_end_offsets={ReplicaId(*TP, broker): end for broker, end in offsets.items()},
        bystanders={TP: PartitionState(1, (1, 2, 3), frozenset(isr))},
    )


def test_the_lag_of_in_sync_followers_and_replicas_that_left_the_isr_are_counted() -> None:
    assert strain_of(seen({1, 2, 3}, {1: 100, 2: 90, 3: 97})) == Strain(0, 13)
    assert strain_of(seen({1, 2}, {1: 100, 2: 90})) == Strain(1, 10)
    assert strain_of(seen({1, 2}, {1: 100, 2: 90}, live=(1, 2))) == Strain(0, 10)
    assert strain_of(Observation(T0, {}, {}, frozenset())) is None


def test_a_replica_that_another_client_adds_has_not_left_the_isr() -> None:
    observation = seen({1, 2}, {1: 100, 2: 100})
    assert strain_of(
        replace(observation, ongoing={TP: OngoingReassignment((1, 2, 3), (3,), ())})
    ) == (Strain(0, 0))


def test_bystanders_are_seen_along_with_the_plan_on_real_brokers(
    topics: Topics, gateway: ClusterGateway
) -> None:
    mine, others = topics.create([[1, 2]]), topics.create([[2, 1], [4, 2]])
    topics.fill(others, 10)
    plan = make_plan("p", move(mine, 0, (1, 2), (1, 2)))
    watched = bystanders(plan, gateway.describe_topics([mine, others]))
    assert watched == (TopicPartition(others, 0), TopicPartition(mine, 0))
    found = observe(gateway, plan.moves, T0, bystanders=watched)
    assert found.partitions.keys() == plan.by_partition.keys()
    assert found.log_end_offsets[ReplicaId(others, 0, 1)] == 10
    assert strain_of(found) == Strain(0, 0)
