"""How a client sees the model: rights, views that lag, brokers that do not answer, faults."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rehome.cluster.interface.errors import (
    ClusterError,
    ClusterUnreachableError,
    MissingRightError,
)
from rehome.cluster.interface.port import ClusterPort
from rehome.cluster.interface.rights import Call
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition
from world.kafka.acls import AclResource, Binding, Operation
from world.kafka.calling import TIMEOUT_S
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import Fault, FaultKind, Hooks, SetClock
from world.kafka.port import ModelPort

PART = TopicPartition("orders", 0)
RATE = "leader.replication.throttled.rate"


class Box:
    """A model with one topic, its clock, and a client."""

    def __init__(self, **options: Any) -> None:
        self.clock = SetClock()
        self.model = KafkaModel(self.clock, Random(1), **options)
        assert self.model.actions.create_topic("orders", [[1, 2], [2, 3]]) is None
        self.port = self.model.port("User:me")
        self.wait(1)

    def wait(self, seconds: float) -> None:
        self.clock.wait(seconds)
        self.model.catch_up_with_clock()

    def strike(self, kind: FaultKind, broker: int | None = None) -> None:
        self.port.hooks = Hooks(before_call=lambda call, args: Fault(kind, broker))


def rate(broker: int, value: str) -> ConfigChange:
    return ConfigChange(ConfigResource.broker(broker), RATE, ConfigOperation.SET, value)


def test_a_model_is_a_cluster_port() -> None:
    port: ClusterPort = Box().port
    assert sorted(port.describe_cluster().brokers) == [1, 2, 3, 4]


def test_a_topic_that_is_hidden_is_left_out_or_named_with_its_right() -> None:
    box = Box(secured=True)
    box.model.actions.allow([Binding("User:me", Operation.DESCRIBE, AclResource.CLUSTER)])
    box.wait(1)
    assert box.port.describe_topics() == {}
    error = box.port.describe_topics(["orders"])["orders"].error
    assert error is not None
    assert (error.code, error.message) == (29, "needs the right Topic Describe on orders")
    dirs = box.port.describe_log_dirs().value
    assert PART in {part for one in dirs for part in one.replicas}


@pytest.mark.parametrize(
    "ask",
    [
        lambda port: port.list_reassignments(),
        lambda port: port.current_topics(["orders"]),
        lambda port: port.alter_reassignments({PART: [1, 3]}),
        lambda port: port.elect_preferred_leaders([PART]),
        lambda port: port.describe_log_dirs(),
    ],
)
def test_a_right_on_the_cluster_that_is_missing_is_raised(ask: Callable[[ModelPort], Any]) -> None:
    with pytest.raises(MissingRightError, match="Cluster"):
        ask(Box(secured=True).port)


def test_other_rights_that_are_missing_are_answers() -> None:
    port = Box(secured=True).port
    topic = ConfigResource.topic("orders")
    change = ConfigChange(topic, "retention.ms", ConfigOperation.SET, "1")
    verdicts: list[Any] = [
        port.alter_configs([change], validate_only=True)[topic],
        port.alter_configs([rate(1, "5")])[ConfigResource.broker(1)],
        port.describe_configs([topic])[topic],
        port.describe_configs([ConfigResource.cluster_default()])[ConfigResource.cluster_default()],
        port.create_partitions({"orders": 3})["orders"],
        port.create_topics({"new": [[1]]}, {})["new"],
        port.alter_replica_log_dirs({ReplicaId("orders", 0, 1): "/data/1"})[
            ReplicaId("orders", 0, 1)
        ],
        port.log_end_offsets([ReplicaId("orders", 0, 1)]).value[ReplicaId("orders", 0, 1)],
    ]
    assert [verdict.code for verdict in verdicts] == [29, 31, 29, 31, 29, 29, 31, 29]
    assert all("needs the right" in verdict.message for verdict in verdicts)
    assert port.describe_cluster().operations == frozenset()


def test_a_broker_that_is_cut_off_shows_what_it_knew_and_is_not_asked_for_what_is_current() -> None:
    box = Box()
    box.model.actions.cut_off(1)
    box.model.actions.reassign(PART, [2, 1])
    box.wait(1)

    def seen(ask: Callable[[list[str]], Any]) -> set[Any]:
        found: set[Any] = set()
        for _ in range(40):
            try:
                found.add(ask(["orders"])["orders"].partitions[0].replicas)
            except ClusterError:
                found.add("the broker that was asked does not reach the controller")
        return found

    box.model.world.session_s = 1e6
    assert seen(box.port.describe_topics) == {(1, 2), (2, 1)}
    assert (1, 2) not in seen(box.port.current_topics)


def test_a_broker_that_the_controllers_do_not_hear_is_fenced_when_its_session_ends() -> None:
    box = Box()
    box.model.actions.cut_off(1)

    def is_fenced() -> bool:
        return box.model.world.image.brokers[1].fenced

    box.wait(8)
    assert not is_fenced()
    box.wait(2)
    assert is_fenced()
    assert box.model.world.image.of_topic("orders")[0].isr == (2,)


def test_a_broker_that_does_not_answer_is_named_with_its_reason() -> None:
    box = Box()
    box.model.actions.kill(1)
    box.model.actions.pause(2)
    replicas = [ReplicaId("orders", 0, 1), ReplicaId("orders", 1, 2), ReplicaId("orders", 1, 3)]
    before = box.clock.now()
    missing = box.port.log_end_offsets(replicas).missing
    assert {broker: error.code for broker, error in missing.items()} == {1: 13, 2: 7}
    assert box.clock.now() == before + TIMEOUT_S
    assert {b: e.code for b, e in box.port.log_end_offsets(replicas).missing.items()} == {
        1: 8,
        2: 8,
    }


def test_configs_of_a_dead_broker_are_changed_where_the_controllers_are_known() -> None:
    box = Box()
    box.model.actions.kill(1)
    box.wait(10)
    one = ConfigResource.broker(1)
    refused = box.port.alter_configs([rate(1, "5")])[one]
    assert isinstance(refused, BrokerError)
    assert refused.code == 8
    box.port.controllers_named = True
    assert box.port.alter_configs([rate(1, "5")]) == {one: None}
    box.model.actions.start(1)
    box.wait(10)
    assert box.port.describe_configs([one], [RATE])[one] == {
        RATE: box.model.port().describe_configs([one], [RATE])[one][RATE]  # type: ignore[index]
    }


@pytest.mark.parametrize("kind", [FaultKind.REQUEST_LOST, FaultKind.ANSWER_LOST])
def test_of_a_call_that_is_not_answered_only_the_world_knows_what_came_of_it(
    kind: FaultKind,
) -> None:
    box = Box()
    box.strike(kind)
    with pytest.raises(ClusterError, match="got no answer") as lost:
        box.port.alter_reassignments({PART: [2, 1]})
    assert lost.value.error is not None
    assert lost.value.error.code == 7
    done = box.model.world.image.of_topic("orders")[0].replicas == (2, 1)
    assert done is (kind is FaultKind.ANSWER_LOST)
    assert box.clock.now() == 1 + TIMEOUT_S


def test_other_faults_of_whole_calls() -> None:
    box = Box()
    box.strike(FaultKind.NOT_CONTROLLER)
    with pytest.raises(ClusterError, match="NOT_CONTROLLER"):
        box.port.list_reassignments()
    assert box.port.describe_cluster().brokers
    box.strike(FaultKind.REFUSED)
    with pytest.raises(ClusterUnreachableError):
        box.port.describe_cluster()
    box.strike(FaultKind.BROKER_ANSWER_LOST, 1)
    verdicts = box.port.alter_configs([rate(1, "5"), rate(2, "6")])
    assert [getattr(verdict, "code", 0) for verdict in verdicts.values()] == [7, 0]
    assert box.model.world.image.config(ConfigResource.broker(1)) == {RATE: "5"}


def test_with_the_controllers_away_reads_go_on_and_administration_times_out() -> None:
    box = Box()
    box.model.actions.stop_controllers()
    assert box.port.describe_topics(["orders"])["orders"].error is None
    with pytest.raises(ClusterError, match="got no answer"):
        box.port.list_reassignments()
    box.model.actions.start_controllers()
    assert box.port.list_reassignments() == {}


def test_hooks_see_each_call_with_its_arguments() -> None:
    box = Box()
    calls: list[tuple[str, Call]] = []
    box.port.hooks = Hooks(
        lambda call, args: calls.append(("before", call)),
        lambda call, args: calls.append(("after", call)),
    )
    box.port.describe_cluster()
    box.port.list_reassignments()
    assert calls == [
        ("before", Call.DESCRIBE_CLUSTER),
        ("after", Call.DESCRIBE_CLUSTER),
        ("before", Call.LIST_REASSIGNMENTS),
        ("after", Call.LIST_REASSIGNMENTS),
    ]
