"""Topics whose configuration a snapshot cannot read: all are named, by what the brokers say."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from random import Random

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.rights import Call, naming_right
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, ConfigValue
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock

NO_RIGHT = BrokerError(29, "TOPIC_AUTHORIZATION_FAILED")
SLOW = ErrorCode.REQUEST_TIMED_OUT.error("no answer in time")
GONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.error()
Described = dict[ConfigResource, dict[str, ConfigValue] | BrokerError]


def taken(monkeypatch: pytest.MonkeyPatch, unread: dict[str, BrokerError]) -> str:
    """What the error of a snapshot says; of a fault, the name of its topic is in it."""
    model = KafkaModel(SetClock(), Random(1), 3)
    for topic in ("orders", *unread):
        model.actions.create_topic(topic, [[1, 2]])
    model.advance_to(1)
    port = model.port()
    described = port.describe_configs

    def refused(resources: Collection[ConfigResource], keys: Collection[str]) -> Described:
        found = described(resources, keys)
        for name, error in unread.items():
            if ConfigResource.topic(name) in found:
                answer = naming_right(error, Call.DESCRIBE_CONFIGS, name)
                found[ConfigResource.topic(name)] = answer
        return found

    monkeypatch.setattr(port, "describe_configs", refused)
    with pytest.raises(ClusterError) as failed:
        take_snapshot(port, datetime.now(UTC))
    return failed.value.what


def test_all_of_them_are_named_by_what_the_brokers_say(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = {"b": NO_RIGHT, "gone": GONE, "c": SLOW, "a": NO_RIGHT, "d": SLOW}
    assert taken(monkeypatch, unread) == (
        "The configurations of 4 topics could not be read: TOPIC_AUTHORIZATION_FAILED (29): "
        "needs the right Topic DescribeConfigs on a, b; "
        "REQUEST_TIMED_OUT (7): no answer in time: c, d"
    )


def test_one_of_them_is_named_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken(monkeypatch, {"a": NO_RIGHT}) == (
        "The configuration of topic a could not be read: TOPIC_AUTHORIZATION_FAILED (29): needs "
        "the right Topic DescribeConfigs on a"
    )


def test_of_thousands_of_topics_the_first_are_named_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = taken(monkeypatch, {f"t{number:03}": NO_RIGHT for number in range(120)})
    assert text.startswith("The configurations of 120 topics could not be read")
    assert "t099 and 20 more" in text
    assert "t100" not in text
