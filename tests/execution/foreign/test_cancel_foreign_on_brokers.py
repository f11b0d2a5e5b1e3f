"""Reassignments of other clients cancelled on real brokers, as a person has named them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.clock import utc_now
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    OngoingReassignment,
    Replicas,
    TopicPartition,
)
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.domain.run.states import MoveState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.foreign.cancel_foreign import SetMeanwhileError, cancel_foreign
from rehome.execution.foreign.clean_throttles import clean_throttles
from rehome.execution.foreign.in_flight import Chosen
from rehome.execution.foreign.named import NamedReassignment, NamedReassignments, name_reassignments
from rehome.execution.foreign.read_flights import describe_reassignments
from rehome.execution.throttle.keys import FOLLOWER_RATE, FOLLOWER_REPLICAS
from rehome.ledger.store import Ledger
from tests.agreed_configs import agreed_configs
from tests.execution.conftest import Configure
from tests.execution.driven import replicas_of


class _LosesAnswers:
    """A cluster whose answers to changes are lost, once the brokers have made them."""

    def __init__(self, gateway: ClusterGateway) -> None:
        self._gateway = gateway
        self.lost = 0

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[BrokerId] | None], **options: Any
    ) -> dict[TopicPartition, BrokerError | None]:
        answer = self._gateway.alter_reassignments(targets, **options)
        if None in targets.values():
            self.lost += 1
            raise ClusterError("the connection was closed")
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)


@pytest.fixture
def slow_topic(gateway: ClusterGateway, topics: Any, configure: Configure) -> str:
    """Two partitions on brokers 1 and 2, of which broker 3 receives next to nothing."""
    topic: str = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 3000)
    configure(ConfigResource.broker(3), FOLLOWER_RATE, "1000")
    configure(ConfigResource.topic(topic), FOLLOWER_REPLICAS, "0:3,1:3")
    return topic


def asked_about(
    gateway: ClusterGateway, ledger: Ledger, topic: str, orders: Mapping[TopicPartition, Replicas]
) -> NamedReassignments:
    found = describe_reassignments(gateway, ledger, utc_now(), Chosen(topics=(topic,)))
    chosen = name_reassignments(found.reassignments, orders)
    return NamedReassignments(found.cluster_id, ForeignAction.CANCEL, chosen)


def test_the_order_of_before_is_restored_where_it_is_known_also_after_a_lost_answer(
    gateway: ClusterGateway, ledger: Ledger, slow_topic: str
) -> None:
    known, unknown = (TopicPartition(slow_topic, number) for number in (0, 1))
    gateway.alter_reassignments({known: [2, 3], unknown: [2, 3]})
    asked = asked_about(gateway, ledger, slow_topic, {known: (1, 2)})
    deaf = _LosesAnswers(gateway)
    own = OwnCluster.of(deaf, asked.cluster_id)
    done = cancel_foreign(asked, ledger, own)
    assert deaf.lost == 1
    assert (done.cancelled, done.unordered) == ((known, unknown), (unknown,))
    assert not done.left
    assert not done.ended
    wait_until(lambda: replicas_of(gateway, slow_topic, 0) == (1, 2), "the order of before")
    assert replicas_of(gateway, slow_topic, 1) == (2, 1)
    again = cancel_foreign(asked, ledger, OwnCluster.itself(gateway))
    assert (again.cancelled, again.left) == ((known, unknown), {})


def test_what_was_set_meanwhile_refuses_it_all(
    gateway: ClusterGateway, ledger: Ledger, slow_topic: str
) -> None:
    one, other = (TopicPartition(slow_topic, number) for number in (0, 1))
    gateway.alter_reassignments({one: [3, 2], other: [3, 2]})
    asked = asked_about(gateway, ledger, slow_topic, {})
    gateway.alter_reassignments({other: [3, 1]})
    with pytest.raises(SetMeanwhileError, match="named partitions have changed"):
        cancel_foreign(asked, ledger, OwnCluster.itself(gateway))
    assert set(gateway.list_reassignments()) == {one, other}
    gateway.alter_reassignments({one: None, other: None})


def test_what_has_ended_before_stays_where_it_is(
    gateway: ClusterGateway, ledger: Ledger, slow_topic: str
) -> None:
    ended, flying = (TopicPartition(slow_topic, number) for number in (0, 1))
    gateway.alter_reassignments({ended: [4, 2], flying: [3, 2]})
    wait_until(lambda: replicas_of(gateway, slow_topic, 0) == (4, 2), "it to end")
    asked = asked_about(gateway, ledger, slow_topic, {})
    before = NamedReassignment(ended, "", OngoingReassignment((4, 2, 1), (4,), (1,)))
    both = replace(asked, reassignments=(before, *asked.reassignments))
    done = cancel_foreign(both, ledger, OwnCluster.itself(gateway))
    assert (done.cancelled, done.ended, done.left) == ((flying,), {ended: MoveState.DONE}, {})
    assert replicas_of(gateway, slow_topic, 0) == (4, 2)


def test_throttles_are_taken_away_where_nothing_in_flight_uses_them(
    gateway: ClusterGateway, ledger: Ledger, slow_topic: str
) -> None:
    one, other = (TopicPartition(slow_topic, number) for number in (0, 1))
    gateway.alter_reassignments({one: [3, 2], other: [3, 2]})
    both = asked_about(gateway, ledger, slow_topic, {})
    first = NamedReassignments(both.cluster_id, both.action, both.reassignments[:1])
    cancel_foreign(first, ledger, OwnCluster.itself(gateway))
    topic, broker = ConfigResource.topic(slow_topic), ConfigResource.broker(3)

    def values() -> tuple[str | None, str | None]:
        found = agreed_configs(gateway, [topic, broker], [FOLLOWER_REPLICAS, FOLLOWER_RATE])
        of_topic, of_broker = found[topic], found[broker]
        assert not isinstance(of_topic, BrokerError)
        assert not isinstance(of_broker, BrokerError)
        rate = of_broker.get(FOLLOWER_RATE)
        return of_topic[FOLLOWER_REPLICAS].value, rate.value if rate else None

    clean_throttles(first, [one], ledger, gateway)
    wait_until(lambda: values() == ("1:3", "1000"), "the item of what was cancelled to go")
    second = NamedReassignments(both.cluster_id, both.action, both.reassignments[1:])
    cancel_foreign(second, ledger, OwnCluster.itself(gateway))
    cleaned = clean_throttles(second, [other], ledger, gateway)
    assert not cleaned.refusals
    assert {change.resource for change in cleaned.changes} == {topic, broker}
    wait_until(lambda: values()[0] in (None, ""), "the list to be empty")
