"""Who has changed what, in which order: what a judge knows beside the truth itself.

Changes are read in the model's metadata log, right after each call, so that none is missed and none
is attributed to a call that was lost on its way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from rehome.domain.kafka import ReplicaId, Replicas, TopicPartition
from world.kafka.metadata import MetadataLog

OTHERS = "others"
METADATA_LAG_S = 1.0
"""A broker's answer may be this much older than what the controller has committed: nothing in it
says so. One that is older still is not excused.
"""
ConfigKey = tuple[ConfigResource, str]


@dataclass(frozen=True, slots=True)
class ConfigWrite:
    """A change of one key.

    :param number: of the event, in the order of all.
    :param owner: the name of a Rehome, or OTHERS.
    :param how: the operation that was asked for; None = not known.
    :param read: of the last event that the process's last reading of this resource can have shown;
        None = there was no reading.
    :param asked: the value that was asked for: of a list, items to add or to take away.
    :param listed: number of the process's last reading of what is in flight; None = there was none.
    :param sent_at: when the call for it left its process; None = not known.
    """

    number: int
    at: float
    owner: str
    process: str
    resource: ConfigResource
    key: str
    before: str | None
    after: str | None
    how: ConfigOperation | None
    read: int | None
    asked: str | None = None
    listed: int | None = None
    sent_at: float | None = None


@dataclass(frozen=True, slots=True)
class TopicChanged:
    """A topic was deleted, or created anew: no config of it is left."""

    number: int
    at: float
    topic: str


@dataclass(frozen=True, slots=True)
class Alter:
    """A reassignment that was asked for; ``target`` None = a cancel.

    :param listed: number of the process's last reading of what is in flight; None = there was none.
    :param size_bytes: what the partition's leader had then.
    """

    number: int
    at: float
    owner: str
    process: str
    partition: TopicPartition
    target: Replicas | None
    listed: int | None = None
    size_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class IsrTaken:
    """A call that changed reassignments has taken replicas out of an ISR.

    :param least: min.insync.replicas of the topic; at most its replicas.
    """

    at: float
    owner: str
    partition: TopicPartition
    before: int
    after: int
    least: int


@dataclass(frozen=True, slots=True)
class DirAsked:
    """A replica was to go to a log dir; ``before``: where it was, as the controllers knew."""

    at: float
    owner: str
    replica: ReplicaId
    path: str
    before: str | None


class _Call(NamedTuple):
    """A call that changes configs and has not been answered."""

    owner: str
    changes: dict[ConfigKey, ConfigChange]
    sent_at: float


@dataclass
class History:
    """Everything that was asked, in order."""

    log: MetadataLog
    writes: list[ConfigWrite | TopicChanged] = field(default_factory=list)
    alters: list[Alter] = field(default_factory=list)
    taken: list[IsrTaken] = field(default_factory=list)
    dirs: list[DirAsked] = field(default_factory=list)
    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    initial: dict[ConfigKey, str] = field(default_factory=dict)
    number: int = 0
    _listed: dict[str, int] = field(default_factory=dict)
    _reads: dict[tuple[str, ConfigResource], int] = field(default_factory=dict)
    _configs: dict[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    _open: dict[str, _Call] = field(default_factory=dict)
    _topics: dict[str, str] = field(default_factory=dict)
    _scanned: int = 0
    _numbers: list[int] = field(default_factory=list)
    _committed: list[float] = field(default_factory=list)

    def begin(self) -> None:
        """What is in the log by now is how the world began."""
        self._scan("", "")
        self.writes.clear()
        for resource, values in self._configs.items():
            self.initial |= {(resource, key): value for key, value in values.items()}

    def called(self, owner: str, name: str) -> None:
        """A call was made."""
        self.calls[owner, name] = self.calls.get((owner, name), 0) + 1

    def read(self, process: str, at: float, shown: Mapping[ConfigResource, int]) -> None:
        """A process has read the configs of these.

        :param shown: how many entries of the log the broker that answered for each had read.
        """
        number = self._next()
        oldest = bisect_right(self._committed, at - METADATA_LAG_S)
        for resource, read_to in shown.items():
            entries = max(read_to, oldest)
            old = entries < self._scanned
            self._reads[process, resource] = self._last_of(entries) if old else number

    def _last_of(self, entries: int) -> int:
        """The number of the last event that these many first entries of the log hold."""
        return self._numbers[entries - 1] if entries else 0

    def listed(self, process: str) -> None:
        """A process has been told what is in flight."""
        self._listed[process] = self._next()

    def last_listed(self, process: str) -> int:
        """Number of the last reading of what is in flight by one of these processes, whose names
        begin so; -1 = there was none.
        """
        numbers = (number for name, number in self._listed.items() if name.startswith(process))
        return max(numbers, default=-1)

    def altered(
        self,
        at: float,
        owner: str,
        process: str,
        targets: Mapping[TopicPartition, Replicas | None],
        sizes: Mapping[TopicPartition, float] | None = None,
    ) -> None:
        """Reassignments were asked for.

        :param sizes: bytes that leaders had before.
        """
        for partition, target in targets.items():
            chosen = None if target is None else tuple(target)
            seen, size = self._listed.get(process), (sizes or {}).get(partition, 0.0)
            asked = Alter(self._next(), at, owner, process, partition, chosen, seen, size)
            self.alters.append(asked)

    def asks(
        self, owner: str, process: str, changes: Sequence[ConfigChange], sent_at: float
    ) -> None:
        """A process is about to have these changed; one call may take long, and others act."""
        by_key = {(each.resource, each.key): each for each in changes}
        self._open[process] = _Call(owner, by_key, sent_at)

    def acted(self, owner: str, process: str, at: float) -> None:
        """The world has carried a call out: what is new in the log is the caller's, unless another
        call that has not been answered yet asks for it.
        """
        first = len(self.writes)
        self._scan(owner, process)
        written = {(w.resource, w.key) for w in self.writes[first:] if isinstance(w, ConfigWrite)}
        for change in self._appends(process):
            there = self._configs.get(change.resource, {}).get(change.key)
            new = (change.resource, change.key) not in written
            if new and set(items(change.value)) <= set(items(there)):
                self._changed_nothing(at, owner, process, change)

    def lost(self, owner: str, process: str, at: float) -> None:
        """What a process has asked for never arrives, and it cannot know that."""
        for change in self._appends(process):
            self._changed_nothing(at, owner, process, change)

    def _appends(self, process: str) -> list[ConfigChange]:
        """What it has asked to be put on lists; it asks no more."""
        call = self._open.pop(process, None)
        asked = {} if call is None else call.changes
        return [each for each in asked.values() if each.operation is ConfigOperation.APPEND]

    def _changed_nothing(self, at: float, owner: str, process: str, change: ConfigChange) -> None:
        """Items were asked for that were there already, or the request was lost: for all that the
        asker knows they are its own from now on.
        """
        there = self._configs.get(change.resource, {}).get(change.key)
        read = self._reads.get((process, change.resource))
        what = (change.resource, change.key, there, there, change.operation, read, change.value)
        self.writes.append(ConfigWrite(self._next(), at, owner, process, *what))

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _scan(self, owner: str, process: str) -> None:
        for entry in self.log.entries[self._scanned :]:
            for record in entry.records:
                if record.name == "configs":
                    self._configured(entry.at, (owner, process), record.key, record.value or {})
                elif record.name == "topics" and self._topics.get(record.key) != record.value:
                    self._topics[record.key] = record.value
                    self.writes.append(TopicChanged(self._next(), entry.at, record.key))
                    self._configs.pop(ConfigResource.topic(record.key), None)
            self._numbers.append(self.number)
            self._committed.append(entry.at)
        self._scanned = self.log.end

    def _configured(
        self,
        at: float,
        who: tuple[str, str],
        resource: ConfigResource,
        after: Mapping[str, str],
    ) -> None:
        before = self._configs.get(resource, {})
        self._configs[resource] = after
        if resource.type is ResourceType.TOPIC and resource.name not in self._topics:
            return  # its topic has just gone
        for key in sorted(before.keys() | after.keys()):
            was, now = before.get(key), after.get(key)
            if was != now:
                process = self._asker(who[1], (resource, key))
                call = self._open.get(process)
                owner = call.owner if call else who[0]
                asked = call.changes.get((resource, key)) if call else None
                read = self._reads.get((process, resource))
                how, value = (asked.operation, asked.value) if asked else (None, None)
                what = (resource, key, was, now, how, read, value, self._listed.get(process))
                sent_at = call.sent_at if call else None
                self.writes.append(ConfigWrite(self._next(), at, owner, process, *what, sent_at))

    def _asker(self, process: str, key: ConfigKey) -> str:
        """The process whose call that has not been answered asks for this key."""
        asking = (name for name in (process, *sorted(self._open)) if name in self._open)
        return next((name for name in asking if key in self._open[name].changes), process)


def items(value: str | None) -> list[str]:
    """Items of a list config, in order."""
    return [item.strip() for item in (value or "").split(",") if item.strip()]
