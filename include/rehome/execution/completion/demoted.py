"""Whether demoted brokers lead nothing any more: by a fresh read, after the elections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehome.domain.actions import Action
from rehome.domain.clock import monotonic_s, sleep
from rehome.domain.kafka import BrokerId, PartitionState, TopicPartition
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.request.topic_filters import filters_cover
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.observation.agreed_topics import agreed_topics

_PATIENCE_S, _PAUSE_S = 15.0, 0.5
"""Brokers apply a new leader shortly after the controller has elected it."""


@dataclass(frozen=True, slots=True)
class Demoted:
    """What a fresh read shows of brokers that are to lead nothing.

    :param led: partitions that one of them leads or is the preferred leader of, though another
        broker has a replica in sync.
    :param alone: the same, where no other broker could lead.
    """

    brokers: tuple[BrokerId, ...]
    led: tuple[TopicPartition, ...] = ()
    alone: tuple[TopicPartition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types, for demoted.json."""
        return {
            "as_planned": not self.led,
            "brokers": list(self.brokers),
            "led": [str(partition) for partition in self.led],
            "alone": [str(partition) for partition in self.alone],
        }


def is_demotion(request: ReassignmentRequest) -> bool:
    """Whether brokers are to lead nothing at the end."""
    return request.action is Action.DEMOTE


def wait_until_demoted(cluster: OwnCluster, request: ReassignmentRequest) -> Demoted:
    """Poll until the brokers lead nothing that others could, or patience ends.

    :raises ClusterError: the cluster could not be read.
    """
    deadline = monotonic_s() + _PATIENCE_S
    while True:
        reading = read_demoted(cluster, request)
        if not reading.led or monotonic_s() > deadline:
            return reading
        sleep(_PAUSE_S)


def read_demoted(cluster: OwnCluster, request: ReassignmentRequest) -> Demoted:
    """What the brokers lead, or are preferred to lead, as far as the request is about it.

    :raises ClusterError: the cluster could not be read.
    """
    demoted = set(request.brokers)
    able = cluster.describe_cluster().brokers.keys() - demoted
    led: list[TopicPartition] = []
    alone: list[TopicPartition] = []
    topics = agreed_topics(cluster, None)
    covers = filters_cover(request.topics, topics)
    for topic in topics.values():
        for number, state in topic.partitions.items():
            if covers(topic.name, number, topic.internal) and _is_led(state, demoted):
                left = led if able.intersection(state.isr) else alone
                left.append(TopicPartition(topic.name, number))
    return Demoted(request.brokers, tuple(sorted(led)), tuple(sorted(alone)))


def _is_led(state: PartitionState, demoted: set[BrokerId]) -> bool:
    return state.leader in demoted or bool(state.replicas and state.replicas[0] in demoted)
