"""What may be asked of reassignments in flight."""

from __future__ import annotations

from typing import Any

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.foreign.foreign_request import ForeignAction, parse_foreign
from rehome.errors import InvalidRequestError

FILE = {"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}


def test_a_request_is_read() -> None:
    read = parse_foreign({"action": "adopt", "topics": ["t:3"], "throttle": 5_000_000})
    assert (read.action, read.topics, read.rate_bytes_per_s) == (
        ForeignAction.ADOPT,
        ("t:3",),
        5_000_000,
    )
    assert parse_foreign({"reassignment": FILE}).file == {TopicPartition("t", 0): (1, 2)}
    assert parse_foreign({}).action is ForeignAction.DESCRIBE
    assert parse_foreign({"action": "cancel", "brokers": "3, 4"}).brokers == (3, 4)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"action": "cancel"}, "Action cancel needs topics, brokers, or all_in_flight."),
        ({"action": "adopt"}, "Action adopt needs topics, brokers, or all_in_flight."),
        ({"action": "cancel", "topics": ["t"], "all_in_flight": True}, "leave one of them out"),
        (
            {"action": "adopt", "all_in_flight": True, "reassignment": FILE},
            "takes no reassignment",
        ),
        ({"action": "follow", "clean_throttles": True}, "for action cancel only"),
        ({"action": "describe", "throttle": 5_000_000}, "for action adopt only"),
        ({"topics": ["t:x"]}, "after the colon come partitions"),
        ({"reassignment": {"partitions": [{}]}}, "topic"),
        ({"action": "stop"}, "action"),
    ],
)
def test_what_is_wrong_with_it_is_said(params: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        parse_foreign(params)
