"""Cruise Control's executor: another tool that throttles and moves, and clears up after itself.

As ``ReplicationThrottleHelper`` does: a rate is set where a broker has none of its own, lists are
read, merged and written as a whole; at the end all rates of its brokers are deleted, also those of
other clients, and when they read as not set its replicas are taken off the lists. Where brokers
have a default rate they never read so: it waits longer and longer (its pull request 2385).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, Replicas, TopicPartition
from world.others import LISTS, RATES

DYNAMIC = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG")
LOOKS_S = 10.0
"""execution.progress.check.interval.ms"""
GIVES_UP_S = 3600.0
READS_AGAIN_S, MOST_READINGS = 5.0, 30
"""CruiseControlMetricsUtils.retry: each time after twice as long."""


@dataclass(frozen=True)
class CruiseControl:
    """One execution of one proposal.

    :param wait: lets seconds pass, while others act.
    """

    port: ClusterPort
    wait: Callable[[float], None]

    def execute(self, partition: TopicPartition, target: Replicas, rate: int) -> None:
        """From the first throttle to the last; it begins nothing while others reassign."""
        if self.port.list_reassignments():
            return
        found = self.port.describe_topics([partition.topic])[partition.topic].partitions.get(
            partition.partition
        )
        if found is None:
            return
        brokers = sorted({*found.replicas, *target})
        items = {f"{partition.partition}:{broker}" for broker in brokers}
        self._set_rates(brokers, rate)
        self._change_lists(partition.topic, lambda there: there | items)
        self.port.alter_reassignments({partition: target})
        self._wait_for(partition)
        self._delete_rates(brokers)
        self._change_lists(partition.topic, lambda there: there - items)

    def _wait_for(self, partition: TopicPartition) -> None:
        waited = 0.0
        while waited < GIVES_UP_S and self.port.list_reassignments([partition]):
            self.wait(LOOKS_S)
            waited += LOOKS_S

    def _set_rates(self, brokers: Collection[int], rate: int) -> None:
        own = self._own_rates(brokers)
        self._alter(
            ConfigChange(ConfigResource.broker(broker), key, ConfigOperation.SET, str(rate))
            for broker in brokers
            for key in RATES
            if (broker, key) not in own
        )

    def _delete_rates(self, brokers: Collection[int]) -> None:
        self._alter(
            ConfigChange(ConfigResource.broker(broker), key, ConfigOperation.DELETE)
            for broker, key in sorted(self._own_rates(brokers))
        )
        for reading in range(MOST_READINGS):
            if not self._own_rates(brokers, DYNAMIC):
                return
            self.wait(READS_AGAIN_S * 2**reading)

    def _own_rates(
        self, brokers: Collection[int], sources: Collection[str] = DYNAMIC[:1]
    ) -> set[tuple[int, str]]:
        resources = [ConfigResource.broker(broker) for broker in brokers]
        found = self.port.describe_configs(resources, RATES)
        return {
            (broker, key)
            for broker, resource in zip(brokers, resources, strict=True)
            if not isinstance(values := found[resource], BrokerError)
            for key, value in values.items()
            if value.source in sources
        }

    def _change_lists(self, topic: str, changed: Callable[[set[str]], set[str]]) -> None:
        resource = ConfigResource.topic(topic)
        values = self.port.describe_configs([resource], LISTS)[resource]
        if isinstance(values, BrokerError):
            return
        changes = []
        for key in LISTS:
            text = (values[key].value if key in values else "") or ""
            before = {item for item in text.split(",") if item}
            after = changed(before)
            if after and after != before:
                value = ",".join(sorted(after))
                changes.append(ConfigChange(resource, key, ConfigOperation.SET, value))
            elif before and not after:
                changes.append(ConfigChange(resource, key, ConfigOperation.DELETE))
        self._alter(changes)

    def _alter(self, changes: Iterable[ConfigChange]) -> None:
        asked = list(changes)
        if asked:
            self.port.alter_configs(asked)
