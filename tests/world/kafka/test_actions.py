"""Other hands and bad luck: brokers that die, return empty, are cut off; disks; producers."""

from __future__ import annotations

from random import Random

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock
from world.kafka.metadata import Partition
from world.kafka.nodes import Process

PART = TopicPartition("orders", 0)


def model(*replicas: int, size: float = 20e6) -> KafkaModel:
    made = KafkaModel(SetClock(), Random(1))
    assert made.actions.create_topic("orders", [list(replicas)]) is None
    made.advance_to(1)
    made.actions.fill(PART, size)
    return made


def state(made: KafkaModel) -> Partition:
    return made.world.image.of_topic("orders")[0]


def end_on(made: KafkaModel, broker: int) -> int:
    found = made.world.replica(PART, broker)
    assert found is not None
    return int(found.log.end)


def test_a_broker_that_is_killed_leaves_after_nine_seconds_and_catches_up_when_it_returns() -> None:
    made = model(1, 2, 3)
    made.actions.produce(PART, 1e5)
    made.actions.kill(1)
    made.advance_to(9)
    assert state(made).leader == 1
    made.advance_to(11)
    assert (state(made).leader, set(state(made).isr)) == (2, {2, 3})
    made.actions.start(1)
    made.advance_to(30)
    assert set(state(made).isr) == {1, 2, 3}
    assert end_on(made, 1) == end_on(made, 2) > 20_000


def test_what_is_filled_is_on_all_replicas_and_stays_there_however_slow_they_are() -> None:
    made = model(1, 2, 3)
    throttle = ("follower.replication.throttled.rate", "1000")
    made.actions.set_config(ConfigResource.cluster_default(), *throttle)
    items = ("follower.replication.throttled.replicas", "0:2,0:3")
    made.actions.set_config(ConfigResource.topic("orders"), *items)
    made.advance_to(3)
    assert [end_on(made, broker) for broker in (1, 2, 3)] == [20_000] * 3
    made.actions.stop(1)
    made.advance_to(10)
    assert end_on(made, 2) == 20_000


def test_a_topic_is_filled_where_one_of_its_brokers_has_just_been_killed() -> None:
    made = KafkaModel(SetClock(), Random(1))
    made.actions.kill(1)
    assert made.actions.create_topic("orders", [[1, 2]]) is None
    made.actions.fill(PART, 20e6)
    assert made.world.replica(PART, 1) is None
    assert end_on(made, 2) > 0


def test_a_clean_shutdown_hands_leaders_over_at_once() -> None:
    made = model(1, 2)
    made.actions.stop(1)
    assert (state(made).leader, state(made).isr) == (2, (2,))
    made.advance_to(3)
    assert made.world.image.brokers[1].fenced
    made.actions.start(1)
    made.advance_to(10)
    assert set(state(made).isr) == {1, 2}


def test_the_only_replica_that_returns_empty_leads_and_what_was_acknowledged_is_gone() -> None:
    made = model(1)
    assert made.actions.reassign(PART, [3]) is None
    made.actions.set_config(
        ConfigResource.topic("orders"), "leader.replication.throttled.replicas", "*"
    )
    made.actions.kill(1)
    made.advance_to(20)
    assert state(made).leader is None
    made.actions.start(1, empty=True)
    made.advance_to(60)
    key = made.actions.key(PART)
    assert key is not None
    assert state(made).replicas == (3,)
    assert end_on(made, 3) == 0 < made.world.acknowledged[key]


def test_a_paused_broker_answers_again_and_keeps_its_place() -> None:
    made = model(1, 2)
    made.actions.pause(2)
    made.advance_to(5)
    made.actions.resume(2)
    made.advance_to(60)
    assert made.world.nodes[2].process is Process.RUNNING
    assert set(state(made).isr) == {1, 2}


def test_a_follower_that_does_not_fetch_and_lacks_something_leaves_the_isr_after_30_s() -> None:
    made = model(1, 2)
    made.world.session_s = 1e6
    made.actions.produce(PART, 1e5)
    made.actions.pause(2)
    made.advance_to(25)
    assert set(state(made).isr) == {1, 2}
    made.advance_to(70)
    assert state(made).isr == (1,)
    assert made.world.acknowledged[made.actions.key(PART)] > 20_000  # type: ignore[index]


def test_a_disk_that_fills_takes_its_replicas_offline() -> None:
    made = model(1, 2)
    path = made.world.nodes[2].replicas[made.actions.key(PART)].path  # type: ignore[index]
    made.actions.fill_disk(2, path, 100e9 - 30e6)
    made.actions.produce(PART, 1e6)
    made.advance_to(5)
    assert set(state(made).isr) == {1, 2}
    made.advance_to(20)
    assert state(made).isr == (1,)
    dirs = made.port().describe_log_dirs([2]).value
    assert {one.path: one.error and one.error.code for one in dirs}[path] == 56


def test_a_topic_that_is_deleted_and_created_again_has_another_id_and_no_configs() -> None:
    made = model(1, 2)
    before = made.actions.key(PART)
    made.actions.set_config(ConfigResource.topic("orders"), "retention.ms", "5")
    assert made.actions.delete_topic("orders") is None
    assert made.actions.create_topic("orders", [[3, 4]]) is None
    made.advance_to(2)
    assert made.actions.key(PART) != before
    assert made.world.image.config(ConfigResource.topic("orders")) == {}
    assert all(before not in node.replicas for node in made.world.nodes.values())


def test_an_unclean_leader_makes_others_forget_what_it_does_not_have() -> None:
    made = model(1, 2)
    made.actions.set_config(
        ConfigResource.topic("orders"), "unclean.leader.election.enable", "true"
    )
    made.actions.kill(2)
    made.advance_to(12)
    made.actions.fill(PART, 5e6)
    made.actions.kill(1)
    made.actions.start(2)
    made.advance_to(40)
    assert (state(made).leader, end_on(made, 2)) == (2, 20_000)
    made.actions.start(1)
    made.advance_to(80)
    assert end_on(made, 1) == 20_000
