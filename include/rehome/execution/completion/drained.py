"""Whether a drain has left its brokers empty: by metadata, and by what lies in their log dirs.

Between the snapshot that a drain is planned on and its end any client may create topics, partitions
or replicas on the very brokers that are being emptied. Whoever removes such a broker because its
run has succeeded loses them.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rehome.domain.actions import Action, Trait
from rehome.domain.clock import monotonic_s, sleep
from rehome.domain.kafka import (
    BrokerId,
    LogDir,
    LogDirName,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.move import MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.request.topic_filters import filters_cover
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.observation.agreed_topics import agreed_topics

_PATIENCE_S, _PAUSE_S = 60.0, 0.5
"""Brokers delete a replica a moment after the controller has taken it from them."""


class Where(enum.StrEnum):
    """What says that a replica is on a broker."""

    ASSIGNED = "assigned"  # metadata: it is one of the partition's replicas
    ON_DISK = "on disk"  # only its log dirs: metadata does not place it there
    HIDDEN = "hidden"  # only its log dirs: its topic is hidden from this principal, or gone


@dataclass(frozen=True, slots=True, order=True)
class LeftOver:
    """A replica on a broker that was to be empty.

    :param log_dir: where it lies; "" where no log dir shows it.
    """

    broker: BrokerId
    partition: TopicPartition
    where: Where
    log_dir: str = ""

    def __str__(self) -> str:
        place = f" in {self.log_dir}" if self.log_dir else ""
        return f"{self.partition} on broker {self.broker} ({self.where}{place})"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {
            "broker": self.broker,
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "where": self.where.value,
            "log_dir": self.log_dir,
        }


@dataclass(frozen=True, slots=True)
class Drained:
    """What a fresh read shows of brokers that a drain was to empty.

    :param left: what is on them though it ought not to be.
    :param unpaid: what the plan has left on them because its budget was spent; the plan lists it.
    :param unread: brokers whose log dirs could not be read, each with the reason: of these only
        metadata was read, which says nothing of single log dirs.
    :param silent: those of them that are alive, and did not answer.
    :param log_dirs: of an evacuation: what was to be emptied of these brokers; else all of them.
    """

    brokers: tuple[BrokerId, ...]
    left: tuple[LeftOver, ...] = ()
    unread: Mapping[BrokerId, str] = field(default_factory=dict)
    unpaid: tuple[LeftOver, ...] = ()
    log_dirs: tuple[LogDirName, ...] = ()
    silent: frozenset[BrokerId] = frozenset()

    @property
    def as_planned(self) -> bool:
        """Whether nothing was found on them but what the plan has left there: mostly, nothing."""
        return not self.left and not self.unproved

    @property
    def unproved(self) -> bool:
        """Whether it is not known what lies on a live broker, or in log dirs, that were to be
        emptied. On a broker that is not alive, and on a failed disk, no read can tell.
        """
        return bool(self.silent or (self.log_dirs and self.unread))

    @property
    def plannable(self) -> tuple[LeftOver, ...]:
        """What can be moved away: the rest is no replica that a partition knows of."""
        return tuple(item for item in self.left if item.where is Where.ASSIGNED)


def wait_until_drained(
    cluster: OwnCluster, request: ReassignmentRequest, emptied: Collection[LogDirName] = ()
) -> Drained:
    """Poll until nothing is on the brokers but replicas that do not go by themselves.

    :param emptied: log dirs that the plan has emptied, see :func:`emptied_by`.
    :raises ClusterError: the cluster could not be read.
    """
    deadline = monotonic_s() + _PATIENCE_S
    while True:
        reading = read_drained(cluster, request, emptied)
        settled = len(reading.plannable) == len(reading.left) and not reading.unproved
        if settled or monotonic_s() > deadline:
            return reading
        sleep(_PAUSE_S)


def emptied_by(plan: Plan) -> frozenset[LogDirName]:
    """Log dirs that replicas leave in an evacuation: also those that are not cordoned any more."""
    return frozenset(
        LogDirName(broker, path)
        for move in plan.moves
        if move.reason is MoveReason.EVACUATE
        for broker, path in zip(move.current, move.current_log_dirs, strict=False)
        if path and broker in (*move.removing, *move.relocating)
    )


def read_drained(
    cluster: OwnCluster, request: ReassignmentRequest, emptied: Collection[LogDirName] = ()
) -> Drained:
    """What is on the brokers of a drain now, as far as its request is about it.

    Log dirs are read before metadata, so that a replica that arrives meanwhile is in one of them.

    :param emptied: log dirs that the plan of an evacuation has emptied.
    :raises ClusterError: the cluster could not be read.
    """
    if request.action is Action.EVACUATE_LOG_DIRS:
        return _in_log_dirs(cluster, request, emptied)
    live = cluster.describe_cluster().brokers.keys()
    on_disk = cluster.describe_log_dirs(sorted(set(request.emptied) & live))
    topics = agreed_topics(cluster, None)
    unread = {broker: "it is not alive" for broker in request.emptied if broker not in live}
    unread |= {broker: str(error) for broker, error in on_disk.missing.items()}
    places = {
        (log_dir.broker, partition): log_dir.path
        for log_dir in on_disk.value
        for partition in log_dir.replicas
    }
    unread |= _offline(on_disk.value)
    left = {
        (item.broker, item.partition): item
        for item in (
            *_on_disk(request, places, topics),
            *_assigned_replicas(request, places, topics),
        )
    }
    return Drained(
        request.emptied, tuple(sorted(left.values())), unread, silent=frozenset(on_disk.missing)
    )


def _in_log_dirs(
    cluster: OwnCluster, request: ReassignmentRequest, emptied: Collection[LogDirName]
) -> Drained:
    """What lies in the log dirs of an evacuation: those that are named; else those that its plan
    has emptied, and those that are cordoned now.
    """
    live = cluster.describe_cluster().brokers.keys()
    names = {*request.log_dirs} or {*emptied}
    broker_ids = {name.broker for name in names}
    if not request.log_dirs:
        broker_ids |= set(request.brokers) or set(live)
    answer = cluster.describe_log_dirs(sorted(broker_ids & live))
    topics = agreed_topics(cluster, None)
    dirs_by_name = {LogDirName(log_dir.broker, log_dir.path): log_dir for log_dir in answer.value}
    cordoned = {name for name, log_dir in dirs_by_name.items() if log_dir.cordoned}
    meant = names if request.log_dirs else names | cordoned
    brokers = {name.broker for name in meant}
    unread = dict.fromkeys(brokers - live, "it is not alive")
    unread |= {broker: str(e) for broker, e in answer.missing.items() if broker in brokers}
    # A broker names its failed log dirs, too: one that it does not name is none of its own.
    there = {name: dirs_by_name[name] for name in meant if name in dirs_by_name}
    unread |= _offline(list(there.values()))
    left = {
        LeftOver(name.broker, partition, _where(name.broker, partition, topics), name.path)
        for name, log_dir in there.items()
        for partition in log_dir.replicas
    }
    return Drained(
        tuple(sorted(brokers)), tuple(sorted(left)), unread, log_dirs=tuple(sorted(meant))
    )


def _where(
    broker: BrokerId, partition: TopicPartition, topics: Mapping[str, TopicDescription]
) -> Where:
    topic = topics.get(partition.topic)
    if topic is None:
        return Where.HIDDEN
    state = topic.partitions.get(partition.partition)
    return Where.ASSIGNED if state is not None and broker in state.replicas else Where.ON_DISK


def _assigned_replicas(
    request: ReassignmentRequest,
    places: Mapping[tuple[BrokerId, TopicPartition], str],
    topics: Mapping[str, TopicDescription],
) -> Iterator[LeftOver]:
    covers = filters_cover(request.topics, topics)
    for topic in topics.values():
        for number, state in topic.partitions.items():
            if not covers(topic.name, number, topic.internal):
                continue
            partition = TopicPartition(topic.name, number)
            for broker in set(request.emptied).intersection(state.replicas):
                log_dir = places.get((broker, partition), "")
                yield LeftOver(broker, partition, Where.ASSIGNED, log_dir)


def _on_disk(
    request: ReassignmentRequest,
    places: Mapping[tuple[BrokerId, TopicPartition], str],
    topics: Mapping[str, TopicDescription],
) -> Iterator[LeftOver]:
    covers = filters_cover(request.topics, {partition.topic for _, partition in places})
    for (broker, partition), log_dir in places.items():
        topic = topics.get(partition.topic)
        if covers(*partition, topic is not None and topic.internal):
            where = Where.HIDDEN if topic is None else Where.ON_DISK
            yield LeftOver(broker, partition, where, log_dir)


def _offline(log_dirs: Collection[LogDir]) -> dict[BrokerId, str]:
    failed: dict[BrokerId, list[str]] = {}
    for log_dir in log_dirs:
        if log_dir.error is not None:
            failed.setdefault(log_dir.broker, []).append(f"{log_dir.path}: {log_dir.error}")
    return {broker: "; ".join(reasons) for broker, reasons in failed.items()}


def less_unpaid(
    remainder: Drained, plan: Plan, planned_on: Iterable[tuple[BrokerId, TopicPartition]]
) -> Drained:
    """The same, with what was there already and is in no move of the plan listed apart.

    :param planned_on: replicas, as the snapshot has them that a plan with a budget was made on.
    """
    kept = {(b, partition) for b, partition in planned_on if partition not in plan.by_partition}
    unpaid = {item for item in remainder.plannable if (item.broker, item.partition) in kept}
    left = tuple(item for item in remainder.left if item not in unpaid)
    return replace(remainder, left=left, unpaid=tuple(sorted(unpaid)))


def is_drain(request: ReassignmentRequest) -> bool:
    """Whether brokers, or log dirs of them, are to be empty at the end."""
    return request.has(Trait.FOLLOWED_UP)
