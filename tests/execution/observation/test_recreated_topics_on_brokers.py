"""A topic deleted and created again in mid-move, on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from confluent_kafka.cimpl import NewTopic

from local.process.waiting import wait_until
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import MoveState
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.observation.words.fate_words import RECREATED
from rehome.execution.throttle.keys import LISTS
from rehome.execution.throttle.set_up import clear_throttle
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import SLOW, replicas_of
from tests.ledger.small_plans import move


def test_a_topic_created_again_in_mid_move_is_left_to_its_owner(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: Callable[..., Plan],
    topics: Topics,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 3000)
    first, second = (TopicPartition(topic, number) for number in (0, 1))

    def topic_id() -> str:
        return gateway.describe_topics([topic])[topic].topic_id

    old = topic_id()
    ours = (move(topic, number, (1, 2), (4, 2), 3_000_000) for number in (0, 1))
    plan = approved(*(replace(item, topic_id=old) for item in ours))
    throttled(plan, 200_000)
    assert sorted(advance(plan, ledger, gateway, SLOW).admitted) == [first, second]

    topics.admin.delete_topics([topic])[topic].result(120)
    wait_until(lambda: gateway.describe_topics([topic])[topic].error is not None, "it to be gone")
    again = NewTopic(topic, num_partitions=2, replica_assignment=[[1, 2], [1, 2]])
    topics.admin.create_topics([again])[topic].result(120)
    wait_until(lambda: topic_id() not in ("", old), "the new topic")
    wait_until(lambda: gateway.list_reassignments() == {}, "nothing to be in flight")
    assert gateway.alter_reassignments({second: [4, 2]}) == {second: None}  # its owner's

    settled = advance(plan, ledger, gateway, SLOW).settled
    assert settled == {first: MoveState.GONE, second: MoveState.GONE}
    assert {record.detail for record in ledger.moves(plan.plan_id).values()} == {RECREATED}
    abort(plan.plan_id, ledger, gateway, "enough")
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    wait_until(lambda: replicas_of(gateway, topic, 1) == (4, 2), "what its owner asked for")
    assert replicas_of(gateway, topic, 0) == (1, 2)
    resource = ConfigResource.topic(topic)
    configs = gateway.describe_configs([resource], LISTS)[resource]
    assert isinstance(configs, dict)
    assert {value.source for value in configs.values()} == {"DEFAULT_CONFIG"}
