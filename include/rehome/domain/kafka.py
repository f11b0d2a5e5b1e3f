"""The cluster in Kafka's own words: partitions, replicas, brokers, and the answers brokers give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

BrokerId = int
ANY_LOG_DIR = "any"
"""Kafka's word for a log dir that the broker chooses."""
LogDirKey = tuple[BrokerId, str]
"""A log dir by broker and path: what a :class:`LogDirName` equals."""
Replicas = tuple[BrokerId, ...]
"""The replicas of a partition, the preferred leader first."""
T = TypeVar("T")


class TopicPartition(NamedTuple):
    """A partition by topic name and number; sorts by both."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class SupportedVersions:
    """What a broker says that it can.

    :param requests: highest version of each request, by its number in Kafka's protocol (KIP-35).
    :param features: highest level of each feature, by name (KIP-584).
    """

    requests: Mapping[int, int]
    features: Mapping[str, int]


class ReplicaId(NamedTuple):
    """One replica: a partition on a broker."""

    topic: str
    partition: int
    broker: BrokerId

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition this is a replica of."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class BrokerError:
    """A broker's refusal: Kafka's numeric code, its name and the broker's own message.

    ``code`` follows Kafka's protocol error table (for example 39, INVALID_REPLICA_ASSIGNMENT).
    """

    code: int
    name: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.code})" + (f": {self.message}" if self.message else "")


@dataclass(frozen=True, slots=True)
class Broker:
    """A live broker, from a fresh metadata answer. ``rack`` is the raw ``broker.rack``."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Answer of DescribeCluster: the live brokers, and what the caller may do to the cluster.

    :param operations: names of the cluster operations allowed to this principal
        (``ALTER``, ``ALTER_CONFIGS``, ``DESCRIBE``, …); None when the broker did not say.
    """

    cluster_id: str
    controller_id: BrokerId | None
    brokers: Mapping[BrokerId, Broker]
    operations: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition as metadata shows it. ``replicas``: preferred leader first, stored order.

    ``leader`` is None where the partition has no leader now.
    """

    leader: BrokerId | None
    replicas: tuple[BrokerId, ...]
    isr: frozenset[BrokerId]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as metadata shows it; ``error`` replaces the rest when the broker refused.

    :param operations: names of the topic operations allowed to this principal, None if not asked.
    """

    name: str
    topic_id: str
    internal: bool
    partitions: Mapping[int, PartitionState]
    operations: frozenset[str] | None = None
    error: BrokerError | None = None


class HighWatermark(NamedTuple):
    """Below ``offset`` consumers see what a partition holds, for all in-sync replicas have it.

    :param leader_epoch: of the leader that says so; a later one has a higher epoch.
    """

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """An entry of ListPartitionReassignments: in flight, ``replicas`` = target + removing."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]

    @property
    def target(self) -> tuple[BrokerId, ...]:
        """The replica set that will be left when the reassignment ends."""
        return tuple([broker for broker in self.replicas if broker not in self.removing])

    def leads_to(self, target: tuple[BrokerId, ...]) -> bool:
        """Whether this is the ``target``.

        The controller lists the target first: then there is nothing to sort out, which counts
        where thousands are asked.
        """
        return self.replicas == target + self.removing or self.target == target


@dataclass(frozen=True, slots=True)
class ReplicaOnDisk:
    """A replica inside a log dir (DescribeLogDirs). Sizes in bytes.

    ``offset_lag`` is meaningful for future replicas only: for a replica that is being added
    the broker reports 0 from the first byte on.
    """

    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirName(NamedTuple):
    """A log dir of a broker: ``3:/data/1``."""

    broker: BrokerId
    path: str

    def __str__(self) -> str:
        return f"{self.broker}:{self.path}"


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log dir of a broker (DescribeLogDirs v5). None where the broker does not report it."""

    broker: BrokerId
    path: str
    total_bytes: int | None
    usable_bytes: int | None
    cordoned: bool | None
    error: BrokerError | None
    replicas: Mapping[TopicPartition, ReplicaOnDisk]


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A consumer group as its coordinator knows it.

    :param state: Kafka's name for it (Stable, Empty, …); None when the broker does not say.
    :param committed: the next offset that the group is to read, per partition.
    :param error: why the coordinator did not return (all of) its offsets.
    """

    name: str
    coordinator: BrokerId
    state: str | None
    committed: Mapping[TopicPartition, int]
    error: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One configuration value with where it comes from.

    ``source`` is Kafka's ConfigSource name: DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG, …
    """

    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Partial(Generic[T]):
    """What was read, and who did not answer: a partial result is never silent.

    :param value: what the brokers that answered said.
    :param missing: brokers that did not answer, each with the reason.
    """

    value: T
    missing: Mapping[BrokerId, BrokerError] = field(default_factory=dict)
