"""Preferred leaders come back batch by batch, and only where they are in the ISR."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

import pytest

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import BrokerError, PartitionState, TopicDescription, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.completion import preferred_leaders
from rehome.execution.completion.preferred_leaders import restore_preferred_leaders
from tests.conftest import Topics
from tests.execution.simulated_cluster import SimulatedCluster
from tests.execution.slow_cluster import VirtualTime
from tests.ledger.small_plans import make_plan, move


class Elections:
    """The cluster, whose elections are remembered with who led when each was asked for.

    :param falls_behind: leaves the ISR, as far as metadata shows, after the first election: real
        brokers cannot be made to do so at that moment.
    """

    def __init__(self, gateway: ClusterGateway, falls_behind: TopicPartition | None = None) -> None:
        self._gateway = gateway
        self._falls_behind = falls_behind
        self.batches: list[list[TopicPartition]] = []
        self.led: list[set[TopicPartition]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)

    def current_topics(self, names: Collection[str] | None) -> dict[str, TopicDescription]:
        found = self._gateway.current_topics(names)
        if self._falls_behind is None or not self.batches:
            return found
        topic = found[self._falls_behind.topic]
        state = topic.partitions[self._falls_behind.partition]
        without = replace(state, isr=state.isr - {state.replicas[0]})
        partitions = {**topic.partitions, self._falls_behind.partition: without}
        return {**found, self._falls_behind.topic: replace(topic, partitions=partitions)}

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        self.led.append(led(self._gateway, *{partition.topic for partition in partitions}))
        self.batches.append(list(partitions))
        return self._gateway.elect_preferred_leaders(partitions)


def led(gateway: ClusterGateway, *topics: str) -> set[TopicPartition]:
    """Partitions that their preferred replica leads, by a broker that is up to date."""
    return {
        TopicPartition(name, number)
        for name, topic in gateway.current_topics(topics).items()
        for number, state in topic.partitions.items()
        if state.leader == state.replicas[0]
    }


@pytest.fixture
def turned(gateway: ClusterGateway, topics: Topics) -> Plan:
    """Seven partitions that brokers 1 still leads, and broker 2 is to lead."""
    topic = topics.create([[1, 2]] * 7)
    moves = [move(topic, number, (1, 2), (2, 1)) for number in range(7)]
    assert not any(
        gateway.alter_reassignments({item.partition: item.target for item in moves}).values()
    )
    wait_until(lambda: not gateway.list_reassignments(), "the orders of replicas")

    def turned_round() -> bool:
        states = gateway.describe_topics([topic])[topic].partitions.values()
        return all((state.replicas, state.leader) == ((2, 1), 1) for state in states)

    wait_until(turned_round, "brokers to show the orders")
    return make_plan("p", *moves, cluster_id=gateway.describe_cluster().cluster_id)


def test_leaders_are_elected_in_batches_each_when_the_one_before_is_seen_to_lead(
    gateway: ClusterGateway, turned: Plan
) -> None:
    elections, reported = Elections(gateway), list[tuple[int, int]]()
    done = restore_preferred_leaders(
        turned,
        OwnCluster.of(cast(ClusterPort, elections), turned.cluster_id),
        at_once=3,
        pause_s=0,
        on_progress=lambda *figures: reported.append(figures),
    )
    partitions = [item.partition for item in turned.moves]
    assert elections.batches == [partitions[:3], partitions[3:6], partitions[6:]]
    assert elections.led == [set(), set(partitions[:3]), set(partitions[:6])]
    assert reported == [(3, 7), (6, 7), (7, 7)]
    assert set(done.elected) == set(partitions)
    assert (done.already, done.waiting, done.refused) == (0, (), {})


def test_a_replica_that_leaves_the_isr_before_the_election_is_not_elected(
    gateway: ClusterGateway, turned: Plan
) -> None:
    partitions = [item.partition for item in turned.moves]
    elections = Elections(gateway, falls_behind=partitions[5])
    own = OwnCluster.of(cast(ClusterPort, elections), turned.cluster_id)
    done = restore_preferred_leaders(turned, own, at_once=4, pause_s=0)
    assert elections.batches == [partitions[:4], [partitions[4], partitions[6]]]
    assert done.waiting == (partitions[5],)
    assert set(done.elected) == {*partitions} - {partitions[5]}


class LedByTheLast(SimulatedCluster):
    """The last replica of each partition leads until another one is elected."""

    def __init__(self, moves: Collection[Move]) -> None:
        super().__init__([1, 2], moves)
        self.batches: list[int] = []
        self.elected: set[TopicPartition] = set()

    def state_of(self, partition: TopicPartition, replicas: tuple[int, ...]) -> PartitionState:
        leader = replicas[0 if partition in self.elected else -1]
        return replace(super().state_of(partition, replicas), leader=leader)

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, None]:
        self.batches.append(len(partitions))
        self.elected.update(partitions)
        return dict.fromkeys(partitions)


def test_unless_set_otherwise_a_few_hundred_are_elected_together() -> None:
    """In memory: real brokers would take long to make so many partitions."""
    plan = make_plan("p", *[move("t", n, (1, 2), (2, 1)) for n in range(1000)], cluster_id="sim")
    cluster = LedByTheLast(plan.moves)
    own = OwnCluster.of(cast(ClusterPort, cluster), "sim")
    done = restore_preferred_leaders(plan, own, pause_s=0)
    assert len(done.elected) == sum(cluster.batches) == 1000
    assert 100 <= max(cluster.batches) <= 500


def test_batches_are_a_while_apart_though_leaders_are_seen_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a clock that only waiting puts forward."""
    time, begun = VirtualTime(), list[float]()
    monkeypatch.setattr(preferred_leaders, "monotonic_s", time.monotonic)
    monkeypatch.setattr(preferred_leaders, "sleep", time.sleep)
    plan = make_plan("p", *[move("t", n, (1, 2), (2, 1)) for n in range(7)], cluster_id="sim")
    cluster = LedByTheLast(plan.moves)
    own = OwnCluster.of(cast(ClusterPort, cluster), "sim")

    def tell(_done: int, _of: int) -> None:
        begun.append(time.now_s)

    restore_preferred_leaders(plan, own, at_once=3, pause_s=1.5, on_progress=tell)
    assert (cluster.batches, begun) == ([3, 3, 1], [0.0, 1.5, 3.0])


class Late(LedByTheLast):
    """Shows new leaders at the third reading after an election: real brokers show them sooner."""

    def __init__(self, moves: Collection[Move]) -> None:
        super().__init__(moves)
        self.to_be_shown: set[TopicPartition] = set()
        self.unseen: list[int] = []
        self.readings = 0

    def describe_topics(self, *args: Any, **options: Any) -> dict[str, TopicDescription]:
        self.readings += 1
        if self.readings >= 3:
            self.elected |= self.to_be_shown
            self.to_be_shown = set()
        return super().describe_topics(*args, **options)

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, None]:
        self.unseen.append(len(self.to_be_shown))
        self.to_be_shown.update(partitions)
        self.readings = 0
        return dict.fromkeys(partitions)


def test_the_next_batch_waits_until_the_leaders_of_the_one_before_are_seen() -> None:
    plan = make_plan("p", *[move("t", n, (1, 2), (2, 1)) for n in range(7)], cluster_id="sim")
    cluster = Late(plan.moves)
    own = OwnCluster.of(cast(ClusterPort, cluster), "sim")
    assert len(restore_preferred_leaders(plan, own, at_once=3, pause_s=0).elected) == 7
    assert cluster.unseen == [0, 0, 0]
