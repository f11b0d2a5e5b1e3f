"""The state of a cluster, to compare before and after."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, TopicDescription
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    own_value,
)
from rehome.execution.throttle.ownership.marks import is_mark
from tests.agreed_configs import agreed_configs

KEYS = (LEADER_RATE, FOLLOWER_RATE, LEADER_REPLICAS, FOLLOWER_REPLICAS, LOG_DIR_RATE)
MARKS = "marks"
"""What Rehomes say of themselves on the brokers' default, in ``Throttles``: name -> ""."""


def to(topic: str, replicas: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """Kafka's reassignment JSON for some partitions of a topic."""
    return {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": number, "replicas": list(brokers)}
            for number, brokers in replicas.items()
        ],
    }


Throttles = dict[str, dict[str, str]]


def name_of(resource: ConfigResource) -> str:
    """How a resource is called in ``Throttles``."""
    return f"{resource.type_value} {resource.name}"


def throttles_of(gateway: ClusterGateway, topics: Collection[str]) -> Throttles:
    """Every throttle set on the cluster, its brokers and these topics: resource -> key -> value; of
    a resource whose broker gave no answer, that; and all marks. Once all brokers show the same.
    """
    brokers = gateway.describe_cluster().brokers
    resources = [
        ConfigResource.cluster_default(),
        *map(ConfigResource.broker, sorted(brokers)),
        *map(ConfigResource.topic, sorted(topics)),
    ]
    found: Throttles = {}
    for resource, configs in agreed_configs(gateway, resources, KEYS).items():
        if isinstance(configs, BrokerError):
            found[name_of(resource)] = {"not answered": str(configs)}
            continue
        set_here = {key: own_value(resource, configs.get(key)) for key in KEYS}
        found[name_of(resource)] = {
            key: value for key, value in set_here.items() if value is not None
        }
    default = agreed_configs(gateway, [ConfigResource.cluster_default()])
    (shown,) = default.values()
    if not isinstance(shown, BrokerError):
        found[MARKS] = {key: "" for key in shown if is_mark(key)}
    return found


def no_throttles(gateway: ClusterGateway, topics: Collection[str]) -> Throttles:
    """What :func:`throttles_of` returns where nothing is set: waited for, since brokers follow the
    metadata log, so one of them may still show a throttle that an earlier test has taken back.
    """

    def nothing() -> Throttles | None:
        found = throttles_of(gateway, topics)
        return None if any(found.values()) else found

    found = wait_until(nothing, "brokers without a throttle")
    assert found is not None
    return found


def throttles_become(gateway: ClusterGateway, topics: Collection[str], expected: Throttles) -> None:
    """Wait for :func:`throttles_of` to return this; what it returns instead is in the error."""
    try:
        wait_until(lambda: throttles_of(gateway, topics) == expected, "the expected throttles")
    except TimeoutError as error:
        found = throttles_of(gateway, topics)
        raise AssertionError(f"throttles are {found}, expected: {expected}") from error


def whole_state(gateway: ClusterGateway) -> dict[str, Any]:
    """What a run could have changed, of every topic, every broker and the cluster.

    Replicas in their order, reassignments in flight, and each config with where it comes from.
    For super users: others may see less than there is.
    """
    topics = gateway.current_topics(None)
    resources = [
        ConfigResource.cluster_default(),
        *map(ConfigResource.broker, sorted(gateway.describe_cluster().brokers)),
        *map(ConfigResource.topic, sorted(topics)),
    ]
    configs = agreed_configs(gateway, resources)
    assert all(isinstance(found, dict) for found in configs.values()), configs
    return {
        "replicas": {
            (name, number): partition.replicas
            for name, topic in topics.items()
            for number, partition in topic.partitions.items()
        },
        "ongoing": gateway.list_reassignments(),
        "configs": {name_of(resource): found for resource, found in configs.items()},
    }


def state_of(gateway: ClusterGateway, topics: Collection[str]) -> dict[str, Any]:
    """Replicas in their order, reassignments in flight, and every throttle; of topics that exist,
    by a broker that is up to date.
    """

    def known() -> dict[str, TopicDescription] | None:
        found = gateway.current_topics(topics)
        return None if any(topic.error for topic in found.values()) else found

    described = wait_until(known, "brokers to know the topics")
    return {
        "replicas": {
            (name, number): partition.replicas
            for name, topic in described.items()
            for number, partition in topic.partitions.items()
        },
        "ongoing": gateway.list_reassignments(),
        "throttles": throttles_of(gateway, topics),
    }
