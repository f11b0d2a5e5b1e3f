"""What all parts of the model share: time, the metadata log, brokers, and events to come."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from uuid import UUID

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, ConsumerGroup, TopicPartition
from world.kafka.config_definitions import SCHEMA
from world.kafka.metadata import Image, MetadataLog, Partition, PartitionKey, Table
from world.kafka.nodes import Node, Replica

SESSION_S = 9.0
"""A broker that sends no heartbeat for so long is fenced."""
LAG_MAX_S = 30.0
"""replica.lag.time.max.ms"""


OF_ALL_BROKERS = ConfigResource.cluster_default()
of_topic = cache(ConfigResource.topic)


@dataclass(slots=True)
class Producer:
    """Messages that are written to a partition at a steady rate.

    :param message_bytes: of one message, on disk.
    :param acks: "all" waits for the ISR, "1" for the leader alone.
    """

    rate: float
    message_bytes: float = 1_000.0
    acks: str = "all"


@dataclass
class WorldState:
    """The truth. Plain state, to be read by judges; changed by the model's own parts only.

    :param efficiency: part of a throttle's rate that brokers deliver (0.73-0.92 measured).
    :param version: of the controllers, as (major, minor).
    :param secured: whether ACLs hold; else everybody may do everything.
    """

    rng: Random
    now: float = 0.0
    version: tuple[int, int] = (4, 3)
    efficiency: float = 0.88
    secured: bool = False
    super_users: frozenset[str] = frozenset({"User:admin", "User:broker"})
    controllers_up: bool = True
    session_s: float = SESSION_S
    log: MetadataLog = field(default_factory=MetadataLog)
    nodes: dict[BrokerId, Node] = field(default_factory=dict)
    producers: dict[PartitionKey, Producer] = field(default_factory=dict)
    acknowledged: dict[PartitionKey, float] = field(default_factory=dict)
    wiped: dict[PartitionKey, float] = field(default_factory=dict)
    """When a broker last came back without its replica."""
    """Offset below which producers with acks=all know their messages to be safe."""
    groups: list[ConsumerGroup] = field(default_factory=list)
    flows_changed: bool = True
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _serial: int = 0
    _ids: int = 0

    # -- time ---------------------------------------------------------------------------------

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Do something at a time; what is due at once is done in the order of these calls."""
        self._serial += 1
        heapq.heappush(self._events, (max(when, self.now), self._serial, what))

    @property
    def next_event_at(self) -> float:
        """When the next thing happens that is on the calendar; infinite = never."""
        return self._events[0][0] if self._events else float("inf")

    def due(self) -> Iterator[Callable[[], None]]:
        """Take what is due off the calendar."""
        while self._events and self._events[0][0] <= self.now:
            yield heapq.heappop(self._events)[2]

    # -- metadata -----------------------------------------------------------------------------

    @property
    def image(self) -> Image:
        """What the controllers know: the truth about topics, configs, brokers and ACLs."""
        return self.log.image

    def commit(self, records: list[Table]) -> None:
        """The controllers append records; every broker reads them in its own time."""
        if not records:
            return
        self.log.append(self.now, records)
        for node in self.nodes.values():
            self.at(self.now + node.view.lag_s, node.wake)
        self.flows_changed = True

    def new_id(self) -> str:
        """A topic id that was never given before."""
        self._ids += 1
        return str(UUID(int=self.rng.getrandbits(96) << 32 | self._ids, version=4))

    def partition(self, part: TopicPartition) -> tuple[PartitionKey, Partition] | None:
        """A partition by name, with its key; None where there is none."""
        key = PartitionKey(self.image.topics.get(part.topic, ""), part.partition)
        found = self.image.partitions.get(key)
        return None if found is None else (key, found)

    def replica(self, part: TopicPartition, broker: BrokerId) -> Replica | None:
        """What a broker has on its disks of a partition."""
        key = PartitionKey(self.image.topics.get(part.topic, ""), part.partition)
        return self.nodes[broker].replicas.get(key) if broker in self.nodes else None

    def controller_sees(self, node: Node) -> bool:
        """Whether node and controllers reach each other."""
        return self.controllers_up and node.running and not node.cut_off

    def effective(self, node: Node, image: Image) -> Mapping[str, str]:
        """A broker's configs that are set anywhere: its own, the cluster's, its file's."""
        return {
            **node.static,
            **image.config(OF_ALL_BROKERS),
            **image.config(ConfigResource.broker(node.id)),
        }

    def topic_config(self, image: Image, topic: str, key: str) -> str:
        """A topic's value as the controller resolves it; its own file has no entry here."""
        own = image.config(of_topic(topic))
        if key in own:
            return own[key]
        known = SCHEMA.topic[key]
        default = image.config(OF_ALL_BROKERS)
        return default.get(known.synonym, known.default or "")
