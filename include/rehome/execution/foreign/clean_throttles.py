"""Throttles of other clients that were for what was cancelled, where nothing uses them now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, BrokerId, OngoingReassignment, TopicPartition
from rehome.execution.foreign.named import NamedReassignments
from rehome.execution.throttle.foreign import foreign_throttles
from rehome.execution.throttle.keys import (
    EVERY_REPLICA,
    FOLLOWER_RATE,
    LEADER_RATE,
    LISTS,
    split,
)
from rehome.ledger.store import Ledger


@dataclass(frozen=True)
class CleanedThrottles:
    """What was taken away.

    :param changes: that the brokers have taken; ``refusals``: what not, and why.
    """

    changes: tuple[ConfigChange, ...]
    refusals: Mapping[ConfigResource, BrokerError]


def clean_throttles(
    selection: NamedReassignments,
    cancelled: Collection[TopicPartition],
    ledger: Ledger,
    cluster: ClusterPort,
) -> CleanedThrottles:
    """Take list items of cancelled partitions away, and rates of brokers that nothing in flight
    involves. What plans of Rehome have set, or a mark says that one needs, stays.

    :raises ClusterError: the cluster could not be read.
    """
    foreign = foreign_throttles(ledger, cluster)
    ongoing = cluster.list_reassignments()  # after: who throttles does so first, then starts
    involved = {
        broker
        for partition in cancelled
        for broker in selection.by_partition[partition].entry.replicas
    }
    marked = {(need.resource, need.key) for need in foreign.needs}
    changes = []
    for throttle in foreign.throttles:
        resource, key = throttle.resource, throttle.key
        if (resource, key) in marked:
            continue
        if key in LISTS and not foreign.lists:  # else some items may be another Rehome's
            items = _not_used(resource.name, split(throttle.value), cancelled, ongoing)
            changes += _without(resource, key, items)
        elif key in (LEADER_RATE, FOLLOWER_RATE) and _idle(resource, involved, ongoing):
            changes.append(ConfigChange(resource, key, ConfigOperation.DELETE))
    verdicts = cluster.alter_configs(changes) if changes else {}
    refusals = {resource: error for resource, error in verdicts.items() if error is not None}
    taken = tuple(change for change in changes if change.resource not in refusals)
    return CleanedThrottles(taken, refusals)


def _not_used(
    topic: str,
    items: Collection[str],
    cancelled: Collection[TopicPartition],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
) -> list[str]:
    """Items of a topic's list that are of cancelled partitions, with nothing of them in flight; and
    that of every replica, where nothing of the topic is.
    """
    over = {str(p.partition) for p in cancelled if p.topic == topic and p not in ongoing}
    topic_rests = not any(partition.topic == topic for partition in ongoing)
    return [
        item
        for item in items
        if item.partition(":")[0] in over or (item == EVERY_REPLICA and over and topic_rests)
    ]


def _without(resource: ConfigResource, key: str, items: Collection[str]) -> list[ConfigChange]:
    if not items:
        return []
    if EVERY_REPLICA in items:
        return [ConfigChange(resource, key, ConfigOperation.DELETE)]
    return [ConfigChange(resource, key, ConfigOperation.SUBTRACT, ",".join(items))]


def _idle(
    resource: ConfigResource,
    involved: Collection[BrokerId],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
) -> bool:
    """Whether a rate is of what was cancelled, and nothing in flight is slowed by it."""
    if resource == ConfigResource.cluster_default():
        return not ongoing
    broker = int(resource.name)
    return broker in involved and not any(broker in entry.replicas for entry in ongoing.values())
