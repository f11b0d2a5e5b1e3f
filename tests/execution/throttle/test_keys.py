"""How a throttle is put back, step by step, by the value that is there."""

from __future__ import annotations

import pytest

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.execution.throttle.keys import (
    LEADER_REPLICAS,
    Restored,
    first_step,
    list_items,
    next_step,
)
from rehome.ledger.base.records import SetBy, ThrottleEntry
from tests.ledger.small_plans import move

SUBTRACT, SET, DELETE = ConfigOperation.SUBTRACT, ConfigOperation.SET, ConfigOperation.DELETE
TOPIC, DEFAULT = ConfigResource.topic("t"), ConfigResource.cluster_default()


def entry(prior: str | None, *ours: str) -> ThrottleEntry:
    return ThrottleEntry("p", "c", TOPIC, LEADER_REPLICAS, ours, prior, "")


@pytest.mark.parametrize(
    ("prior", "now", "step"),
    [
        (None, "0:1,0:2", (SUBTRACT, "0:1,0:2")),
        (None, "0:2,5:5", (SUBTRACT, "0:2")),
        (None, "", (DELETE, None)),
        ("", "", (DELETE, None)),  # to brokers the same as none, and nobody knows who has made it
        ("", None, None),
        ("", "0:1", (SUBTRACT, "0:1")),
        ("5:5", "5:5,0:1", (SUBTRACT, "0:1")),
        ("5:5", "5:5", None),
        ("5:5, 6:6", "5:5,6:6", (SET, "5:5, 6:6")),
        ("5:5", None, None),  # another client has deleted it since
        ("5:5", "", (DELETE, None)),  # the same, and ours was taken off it
        ("5:5", "5:5,7:7", None),  # another client has added to it since
        ("5:5", "*", None),
    ],
)
def test_a_list_loses_what_is_ours_and_gets_its_old_bytes_back(
    prior: str | None, now: str | None, step: tuple[ConfigOperation, str | None] | None
) -> None:
    found = next_step(entry(prior, "0:1", "0:2"), now)
    if step is None:
        assert isinstance(found, Restored)
        assert bool(found.detail) == (now != prior)
        assert (found.set_by is SetBy.OTHERS) == ((now or None) != (prior or None))
    else:
        assert found == ConfigChange(TOPIC, LEADER_REPLICAS, *step)


def test_our_throttle_is_taken_back_even_if_the_first_reading_does_not_show_it() -> None:
    assert first_step(entry("5:5", "0:1"), "5:5") == ConfigChange(
        TOPIC, LEADER_REPLICAS, SUBTRACT, "0:1"
    )
    assert isinstance(first_step(entry("5:5", "0:1"), "*"), Restored)


def test_only_moves_that_copy_between_brokers_are_listed() -> None:
    assert list_items([move("t", 0, (1, 2), (2, 1)), move("t", 1, (1, 2), (1,))]) == {}


def test_a_resource_is_put_into_words() -> None:
    reported = [
        f"{item}" for item in (ConfigResource.topic("a"), ConfigResource.broker(3), DEFAULT)
    ]
    assert reported == ["topic a", "broker 3", "the brokers' default"]
