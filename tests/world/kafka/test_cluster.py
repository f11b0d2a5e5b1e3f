"""The model as a whole: a move under a throttle, what clients see of it, and how fast it is."""

from __future__ import annotations

from random import Random

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import ReplicaId, TopicPartition
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock

FOLLOWER_LIST = "follower.replication.throttled.replicas"
FOLLOWER_RATE = "follower.replication.throttled.rate"
PART = TopicPartition("orders", 0)


def model(**options: object) -> tuple[KafkaModel, SetClock]:
    clock = SetClock()
    made = KafkaModel(clock, Random(1), **options)  # type: ignore[arg-type]
    assert made.actions.create_topic("orders", [[1, 2, 3]]) is None
    clock.at = 1.0
    made.catch_up_with_clock()
    return made, clock


def test_a_throttled_move_takes_its_time_and_ends() -> None:
    made, clock = model()
    made.actions.fill(PART, 88e6)
    port = made.port()
    throttle = [
        ConfigChange(ConfigResource.topic("orders"), FOLLOWER_LIST, ConfigOperation.SET, "0:4"),
        ConfigChange(
            ConfigResource.cluster_default(), FOLLOWER_RATE, ConfigOperation.SET, "1000000"
        ),
    ]
    assert not any(port.alter_configs(throttle).values())
    assert port.alter_reassignments({PART: [4, 2, 3]}) == {PART: None}
    clock.at += 50
    ongoing = port.list_reassignments()[PART]
    assert (ongoing.replicas, ongoing.adding, ongoing.removing) == ((4, 2, 3, 1), (4,), (1,))
    half = port.log_end_offsets([ReplicaId("orders", 0, 4)]).value[ReplicaId("orders", 0, 4)]
    assert isinstance(half, int)
    assert 40_000 < half < 48_000  # of 88,000; the brokers deliver 0.88 of the rate
    clock.at += 52
    assert port.list_reassignments() == {}
    state = port.current_topics(["orders"])["orders"].partitions[0]
    assert (state.leader, state.replicas, state.isr) == (4, (4, 2, 3), frozenset({2, 3, 4}))


def test_an_hour_in_which_nothing_happens_is_a_few_events() -> None:
    made, clock = model()
    made.actions.fill(PART, 88e9)
    assert made.actions.reassign(PART, [4, 2, 3]) is None
    made.actions.set_config(ConfigResource.topic("orders"), FOLLOWER_LIST, "0:4")
    made.actions.set_config(ConfigResource.cluster_default(), FOLLOWER_RATE, "1000000")
    clock.at += 10
    made.catch_up_with_clock()
    events = 0
    for _ in range(3600):
        if made.next_event_at() > clock.at + 3600:
            break
        made.advance_to(made.next_event_at())
        events += 1
    assert events < 20


def test_a_copy_that_has_nothing_to_bring_is_delayed_by_others_and_not_for_ever() -> None:
    """As brokers do at a rate that one fetch of another partition uses up each time."""
    made, clock = model()
    assert made.actions.create_topic("empty", [[1, 2]]) is None
    nothing = TopicPartition("empty", 0)
    made.actions.fill(PART, 88e6)
    for topic in ("orders", "empty"):
        made.actions.set_config(ConfigResource.topic(topic), FOLLOWER_LIST, "*")
    made.actions.set_config(ConfigResource.cluster_default(), FOLLOWER_RATE, "1")
    clock.at += 12
    made.catch_up_with_clock()
    port = made.port()
    assert port.alter_reassignments({PART: [4, 2, 3], nothing: [4, 2]}) == {
        PART: None,
        nothing: None,
    }
    clock.at += 5
    assert port.list_reassignments().keys() == {PART, nothing}
    clock.at += 60
    assert port.list_reassignments().keys() == {PART}
