"""What the controller refuses, with its own codes and texts."""

from __future__ import annotations

from random import Random

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock

PART = TopicPartition("orders", 0)


def model(version: tuple[int, int] = (4, 3)) -> KafkaModel:
    made = KafkaModel(SetClock(), Random(1), 4, version)
    assert made.actions.create_topic("orders", [[1, 2], [2, 3]]) is None
    made.advance_to(1)
    return made


@pytest.mark.parametrize(
    ("part", "target", "code", "said"),
    [
        (TopicPartition("none", 0), [1], 3, "Unable to find a topic named none."),
        (TopicPartition("orders", 7), [1], 3, "Unable to find partition orders:7."),
        (PART, [], 39, "an empty replica list"),
        (PART, [9, 8], 39, "broker 8, but no such broker is registered"),
        (PART, [9, 1, 1], 39, "the broker 1 more than once"),
        (PART, None, 85, ""),
    ],
)
def test_a_reassignment_is_refused(
    part: TopicPartition, target: list[int] | None, code: int, said: str
) -> None:
    error = model().actions.reassign(part, target)
    assert error is not None
    assert error.code == code
    assert said in error.message


def test_the_number_of_replicas_is_guarded_against_what_is_in_flight() -> None:
    made = model()
    made.actions.fill(PART, 50e6)
    made.actions.reassign(PART, [1, 2, 3])
    port = made.port()
    (refused,) = port.alter_reassignments({PART: [1, 2]}).values()
    assert refused is not None
    assert (refused.code, refused.message) == (38, "The replication factor is changed from 3 to 2")
    assert port.alter_reassignments({PART: [1, 4, 3]}) == {PART: None}


@pytest.mark.parametrize(("version", "refused"), [((4, 3), False), ((4, 4), True)])
def test_brokers_whose_log_dirs_are_all_cordoned_get_nothing_since_4_4(
    version: tuple[int, int], refused: bool
) -> None:
    made = model(version)
    made.actions.set_config(ConfigResource.broker(4), "cordoned.log.dirs", "*")
    made.advance_to(3)
    error = made.actions.reassign(PART, [1, 4])
    assert (error is not None) is refused


def test_dead_brokers_are_accepted_for_a_move_and_not_as_the_only_ones_of_a_topic() -> None:
    made = model()
    made.actions.kill(4)
    made.advance_to(20)
    assert made.actions.reassign(PART, [1, 4]) is None
    error = made.actions.create_topic("new", [[4]])
    assert error is not None
    assert "are fenced or in controlled shutdown" in error.message
