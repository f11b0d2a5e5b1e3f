"""What brokers make of changed configs; each case was seen on a 4.3.1 broker."""

from __future__ import annotations

import pytest

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from world.kafka import config_rules
from world.kafka.config_definitions import CORDONED, LEADER_LIST, LEADER_RATE, SCHEMA
from world.kafka.errors import Refusal

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
TOPIC = ConfigResource.topic("t")


def after(now: str | None, operation: ConfigOperation, value: str | None) -> str | None:
    values = {} if now is None else {LEADER_LIST: now}
    change = ConfigChange(TOPIC, LEADER_LIST, operation, value)
    return config_rules.altered(TOPIC, values, [change]).get(LEADER_LIST)


@pytest.mark.parametrize(
    ("now", "operation", "value", "then"),
    [
        ("0:1,0:2", APPEND, "0:1", "0:1,0:2"),
        ("0:1", APPEND, "1:2,1:2", "0:1,1:2"),
        ("0:1,1:2", SUBTRACT, "0:1", "1:2"),
        ("0:1", SUBTRACT, "9:9", "0:1"),
        ("0:1", SUBTRACT, "0:1", ""),
        ("0:1,0:1", SUBTRACT, "0:1", "0:1"),
        ("0:1, 0:2", SUBTRACT, "0:2", "0:1, 0:2"),
        (None, SUBTRACT, "0:1", ""),
        ("", APPEND, "0:1", "0:1"),
        ("0:1", DELETE, None, None),
    ],
)
def test_lists_are_added_to_and_taken_from(
    now: str | None, operation: ConfigOperation, value: str | None, then: str | None
) -> None:
    assert after(now, operation, value) == then


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (LEADER_LIST, "*,0:1", "must be the literal '*'"),
        (LEADER_LIST, "junk", "must be the literal '*'"),
        (LEADER_LIST, "-1:2", "must be the literal '*'"),
        (LEADER_LIST, "0:1," * 9000, "exceeds the maximum value size of 32767"),
        ("retention.ms", "abc", "Not a number of type LONG"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("min.cleanable.dirty.ratio", "2", "Invalid value 2.0 for"),
        ("cleanup.policy", "x", "String must be one of: compact, delete"),
        ("unclean.leader.election.enable", "maybe", "either true or false"),
        ("foo", "1", "Unknown topic config name: foo"),
    ],
)
def test_a_topics_value_is_refused(key: str, value: str, said: str) -> None:
    with pytest.raises(Refusal, match="40") as refused:
        config_rules.check_topic_values({key: value})
    assert said in refused.value.error.message


@pytest.mark.parametrize("value", ["*", "", "0:1, 0:2", "0:1,,0:2", ","])
def test_a_list_of_throttled_replicas_is_accepted(value: str) -> None:
    config_rules.check_topic_values({LEADER_LIST: value})


@pytest.mark.parametrize(
    ("resource", "key", "value"),
    [
        (ConfigResource.broker(1), LEADER_RATE, "-5"),
        (ConfigResource.broker(1), LEADER_RATE, str(2**63)),
        (ConfigResource.broker(1), "broker.rack", "x"),
        (ConfigResource.broker(1), CORDONED, "/x"),
        (ConfigResource.cluster_default(), CORDONED, "/data"),
    ],
)
def test_a_brokers_value_is_refused(resource: ConfigResource, key: str, value: str) -> None:
    with pytest.raises(Refusal, match="42"):
        config_rules.check_broker_values(resource, {key: value}, ["/data"])


def test_sources_are_those_of_describe_configs() -> None:
    default, own, static = {LEADER_RATE: "5"}, {LEADER_RATE: "6"}, {"log.retention.ms": "-1"}
    unset = config_rules.describe_broker({}, {}, static)
    assert LEADER_RATE not in unset
    assert unset["log.retention.ms"].source == "STATIC_BROKER_CONFIG"
    assert unset["num.io.threads"].source == "DEFAULT_CONFIG"
    both = config_rules.describe_broker(own, default, static)
    assert (both[LEADER_RATE].value, both[LEADER_RATE].source) == ("6", "DYNAMIC_BROKER_CONFIG")
    topic = config_rules.describe_topic({LEADER_LIST: "0:1, 0:2"}, unset)
    assert topic["retention.ms"].source == "STATIC_BROKER_CONFIG"
    assert topic[LEADER_LIST].value == "0:1,0:2"
    assert topic.keys() == SCHEMA.topic.keys()


def test_what_brokers_do_not_know_is_kept_and_hidden() -> None:
    found = config_rules.describe_broker({"foo": "secret"}, {}, {})
    assert found["foo"].value is None
