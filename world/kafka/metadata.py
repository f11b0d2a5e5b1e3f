"""The cluster's metadata: a log of records, and the image of it that each node has read.

As in KRaft (KIP-631): the controller appends, every broker reads in its own time, and answers from
what it has read. Records are immutable; an image is dicts of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId

Paths = tuple[str, ...]
"""Log dirs, in order."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker as the controllers know it; ``incarnation`` counts its starts."""

    broker: BrokerId
    rack: str | None
    incarnation: int
    fenced: bool
    online_dirs: Paths
    cordoned_dirs: Paths
    shutting_down: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's registration (PartitionRegistration in Kafka). Sequences in stored order.

    :param dirs: path of the log dir per replica, as far as its broker has told.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId | None
    leader_epoch: int = 0
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    elr: tuple[BrokerId, ...] = ()
    last_known_leader: BrokerId | None = None
    recovering: bool = False
    dirs: tuple[tuple[BrokerId, str], ...] = ()

    @property
    def reassigning(self) -> bool:
        """Whether ListPartitionReassignments shows it."""
        return bool(self.adding or self.removing)


class PartitionKey(NamedTuple):
    """A partition by topic id: what deleting and creating a topic changes."""

    topic_id: str
    number: int


class Table(NamedTuple):
    """A record: the value that a key of one of the image's tables now has; None = it is gone."""

    name: str
    key: Any
    value: Any


@dataclass(slots=True)
class Image:
    """What a node knows of the cluster, by table."""

    topics: dict[str, str] = field(default_factory=dict)
    """Topic id by name."""
    names: dict[str, str] = field(default_factory=dict)
    """Topic name by id."""
    partitions: dict[PartitionKey, Partition] = field(default_factory=dict)
    configs: dict[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    brokers: dict[BrokerId, Registration] = field(default_factory=dict)
    acls: dict[Any, bool] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)

    def apply(self, record: Table) -> None:
        """Take one record in."""
        table = getattr(self, record.name)
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value

    def of_topic(self, name: str) -> dict[int, Partition]:
        """Partitions of a topic by number, in order; {} where there is none."""
        topic_id = self.topics.get(name)
        if topic_id is None:
            return {}
        found: dict[int, Partition] = {}
        while (part := self.partitions.get(PartitionKey(topic_id, len(found)))) is not None:
            found[len(found)] = part
        return found

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """The dynamic configs of a resource."""
        return self.configs.get(resource, {})


class Entry(NamedTuple):
    """Records that became visible together, and when the controllers had committed them."""

    at: float
    records: tuple[Table, ...]


class MetadataLog:
    """The controllers' log, and the image at its end: the truth."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.image = Image()

    @property
    def end(self) -> int:
        """The number of entries."""
        return len(self.entries)

    def append(self, at: float, records: list[Table]) -> None:
        """Commit records."""
        if records:
            for record in records:
                self.image.apply(record)
            self.entries.append(Entry(at, tuple(records)))


class View:
    """What one broker has read of the log.

    :param lag_s: how much later than the controller it knows.
    """

    def __init__(self, log: MetadataLog, lag_s: float) -> None:
        self._log = log
        self.lag_s = lag_s
        self.image = Image()
        self.read_to = 0

    def catch_up(self, now: float) -> list[Table]:
        """Read what was committed ``lag_s`` ago and before; returns the records that are new."""
        entries = self._log.entries
        news: list[Table] = []
        until = now - self.lag_s + 1e-9
        while self.read_to < len(entries) and entries[self.read_to].at <= until:
            for record in entries[self.read_to].records:
                self.image.apply(record)
                news.append(record)
            self.read_to += 1
        return news
