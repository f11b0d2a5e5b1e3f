"""What a cluster is like by Kafka's own client: to see whether an attack has changed it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource

DYNAMIC = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    ConfigSource.DYNAMIC_BROKER_CONFIG.value,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
}


@dataclass(frozen=True)
class Seen:
    """Replicas of each partition, and everything that was configured; throttles and cordons too."""

    topics: Mapping[str, Mapping[int, tuple[int, ...]]]
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Witness:
    """Reads one cluster."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._admin = AdminClient(dict(settings) | {"log_level": "0"})

    def replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Of each partition of a topic; {} = there is none."""
        found = self._admin.list_topics(timeout=60).topics.get(topic)
        parts = {} if found is None or found.error else found.partitions
        return {number: tuple(each.replicas) for number, each in sorted(parts.items())}

    def topic_id(self, topic: str) -> str:
        """Kafka's own id of a topic."""
        found = self._admin.describe_topics(TopicCollection([topic]))[topic].result(60)
        return str(found.topic_id)

    def cordoned(self, broker: int) -> str:
        """The log dirs of a broker that take no new replicas."""
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
        found = self._admin.describe_configs([resource])[resource].result(60)
        return str(found["cordoned.log.dirs"].value or "")

    def seen(self) -> Seen:
        """All of it."""
        there = self._admin.list_topics(timeout=60)
        names = [name for name in there.topics if not name.startswith("__")]
        topics = {name: self.replicas(name) for name in sorted(names)}
        kinds = ConfigResource.Type
        resources = [ConfigResource(kinds.TOPIC, name) for name in names]
        resources += [ConfigResource(kinds.BROKER, str(broker)) for broker in there.brokers]
        configs: dict[str, dict[str, str]] = {}
        for resource in resources:  # of brokers, each is asked for its own
            found = self._admin.describe_configs([resource])[resource].result(60)
            own = {key: str(entry.value) for key, entry in found.items() if entry.source in DYNAMIC}
            if own:
                configs[f"{resource.restype.name} {resource.name}"] = own
        return Seen(topics, configs)


@functools.cache
def witness_of(bootstrap: str) -> Witness:
    """One for each cluster."""
    return Witness({"bootstrap.servers": bootstrap})
