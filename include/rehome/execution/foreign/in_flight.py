"""Reassignments in flight of any client: what KIP-240 and KIP-455 want known of each. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rehome.domain.kafka import BrokerId, OngoingReassignment, ReplicaId, Replicas, TopicPartition
from rehome.domain.kafka_limits import INTERNAL_TOPICS
from rehome.domain.request.topic_filters import filters_cover
from rehome.domain.run.observation import Observation
from rehome.execution.observation.foreign_reassignments import Hindrance, hindrance
from rehome.execution.throttle.keys import (
    EVERY_REPLICA,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from rehome.ledger.base.records import Reassignment
from rehome.ledger.stores.by_cluster.seen_reassignments import KnownReassignment, SeenReassignment


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which reassignments are asked about. What is left empty chooses all.

    :param topics: filters as requests have them: ``orders``, ``logs-*``, ``re:…``, ``orders:3-9``.
    :param brokers: a replica is, or is to be, on one of these.
    :param partitions: just these; None = all.
    """

    topics: tuple[str, ...] = ()
    brokers: frozenset[BrokerId] = frozenset()
    partitions: frozenset[TopicPartition] | None = None

    def among(self, ongoing: Mapping[TopicPartition, OngoingReassignment]) -> list[TopicPartition]:
        """Those that are asked about, in order. An internal topic is by its full name only.

        :raises ValueError: a filter is none.
        """
        covered = filters_cover(self.topics, {partition.topic for partition in ongoing})
        return [
            partition
            for partition, entry in sorted(ongoing.items())
            if (self.partitions is None or partition in self.partitions)
            and (not self.brokers or self.brokers & {*entry.replicas, *entry.adding})
            and covered(partition.topic, partition.partition, partition.topic in INTERNAL_TOPICS)
        ]


EVERYTHING = Chosen()


@dataclass(frozen=True)
class ThrottlesSeen:
    """Throttle settings that were read, of whomever.

    :param lists: topic and key → items; a topic that could not be read is not there.
    :param rates: broker and key → bytes per second, None = none; a broker that could not be read
        is not there.
    """

    lists: Mapping[tuple[str, str], Collection[str]] = field(default_factory=dict)
    rates: Mapping[tuple[BrokerId, str], int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicaThrottle:
    """The throttle that holds for one replica.

    :param leads: for what it sends as the leader; else for what it receives.
    :param rate_bytes_per_s: None = nothing slows it, or that is not known.
    :param is_known: whether the list and the rate could be read.
    """

    broker: BrokerId
    leads: bool
    rate_bytes_per_s: int | None
    is_known: bool


@dataclass(frozen=True, slots=True)
class Flight:
    """One reassignment in flight. Bytes and aware UTC times; None = not known, but for ``leader``.

    :param topic_id: "" = not known.
    :param replicas: all of now, the target first; ``adding``, ``removing``: of the controller.
    :param leader: the broker that leads it now; None = none does. Only where ``unread`` is empty.
    :param unread: why the brokers do not describe its partition; "" = they do.
    :param plan_id: the plan of this ledger that has started it; None = another client has, and
        Kafka does not tell which.
    :param identity: of this reassignment, by the ledger: a later one of the partition has another.
    :param since: when it was started, or, of another client's, when it was first seen.
    :param started_here: whether ``since`` is the time of its start.
    :param throttles: of the leader, and of each new replica.
    :param bytes_in_place: what its new replicas hold; ``bytes_left``: what they lack.
    :param rate_bytes_per_s: over the time from an earlier reading; ``eta_s``: at that rate.
    :param hindrance: what keeps it from ending; None = it may end.
    """

    partition: TopicPartition
    topic_id: str
    entry: OngoingReassignment
    leader: BrokerId | None
    unread: str
    plan_id: str | None
    identity: str | None
    since: datetime | None
    started_here: bool
    first_leader: BrokerId | None
    throttles: tuple[ReplicaThrottle, ...]
    bytes_in_place: int | None
    bytes_left: int | None
    rate_bytes_per_s: float | None
    eta_s: float | None
    hindrance: Hindrance | None

    @property
    def originals(self) -> Replicas:
        """The replicas that a cancel leaves, in the controller's order."""
        return tuple(b for b in self.entry.replicas if b not in self.entry.adding)


def all_in_flight(observation: Observation) -> dict[TopicPartition, SeenReassignment]:
    """Everything that a reading shows in flight, for the ledger to remember."""
    return {
        partition: SeenReassignment(
            entry,
            observation.topic_ids.get(partition.topic, ""),
            state.leader if (state := observation.partitions.get(partition)) else None,
            copied_bytes(partition, entry, observation)[0],
        )
        for partition, entry in observation.ongoing.items()
    }


def in_flight_of_plans(
    starts: Collection[Reassignment], ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> dict[TopicPartition, Reassignment]:
    """Starts of plans that are what is in flight: it leads where they do."""
    return {
        start.partition: start
        for start in starts
        if (entry := ongoing.get(start.partition)) and entry.leads_to(start.replicas_target)
    }


def copied_bytes(
    partition: TopicPartition, entry: OngoingReassignment, observation: Observation
) -> tuple[int | None, int | None]:
    """What its new replicas hold, and what they lack by the leader's size; None = not known."""
    state = observation.partitions.get(partition)
    leader = None if state is None else state.leader
    whole = None if leader is None else observation.sizes.get(ReplicaId(*partition, leader))
    if whole is None:
        return (0, 0) if not entry.adding else (None, None)
    in_place = left = 0
    for broker in entry.adding:
        if broker not in observation.live_brokers or broker in observation.missing:
            return None, None
        size = min(whole, observation.sizes.get(ReplicaId(*partition, broker), 0))
        in_place, left = in_place + size, left + whole - size
    return in_place, left


def describe(
    chosen: Collection[TopicPartition],
    observation: Observation,
    throttles: ThrottlesSeen,
    starts: Collection[Reassignment],
    records: Mapping[TopicPartition, KnownReassignment],
) -> tuple[Flight, ...]:
    """What is known of each of these, which the reading shows in flight.

    :param starts: of plans of this ledger that are not known to have ended.
    :param records: what readings before this one have shown.
    """
    ours = in_flight_of_plans(starts, observation.ongoing)
    return tuple(
        _describe_one(p, observation, throttles, ours.get(p), records.get(p)) for p in chosen
    )


def _describe_one(
    partition: TopicPartition,
    observation: Observation,
    throttles: ThrottlesSeen,
    start: Reassignment | None,
    record: KnownReassignment | None,
) -> Flight:
    entry, state = observation.ongoing[partition], observation.partitions.get(partition)
    in_place, left = copied_bytes(partition, entry, observation)
    rate = _rate(in_place, record, observation.taken_at)
    identity, since, leader = None, None, None
    if start is not None:
        identity, since, leader = start.reassignment_id, start.started_at, start.first_leader
    elif record is not None:
        identity, since, leader = record.seen_id, record.first_seen_at, record.first_leader
    return Flight(
        partition=partition,
        topic_id=observation.topic_ids.get(partition.topic, ""),
        entry=entry,
        leader=None if state is None else state.leader,
        unread=_unread(partition, observation),
        plan_id=None if start is None else start.plan_id,
        identity=identity,
        since=since,
        started_here=start is not None,
        first_leader=leader,
        throttles=tuple(_throttles(partition, entry, observation, throttles)),
        bytes_in_place=in_place,
        bytes_left=left,
        rate_bytes_per_s=rate,
        eta_s=left / rate if left is not None and rate else None,
        hindrance=hindrance(entry, observation.live_brokers, state),
    )


def _unread(partition: TopicPartition, observation: Observation) -> str:
    if partition in observation.partitions:
        return ""
    error = observation.unreadable.get(partition.topic)
    return str(error) if error is not None else "the brokers know no such partition"


def _rate(in_place: int | None, record: KnownReassignment | None, now: datetime) -> float | None:
    if record is None:
        return None
    rate = record.rate_until(now, in_place)
    return record.rate_bytes_per_s if rate is None and record.read_at >= now else rate


def _throttles(
    partition: TopicPartition,
    entry: OngoingReassignment,
    observation: Observation,
    throttles: ThrottlesSeen,
) -> list[ReplicaThrottle]:
    state = observation.partitions.get(partition)
    leader = None if state is None else state.leader
    sides = [(leader, True)] if leader is not None else []
    sides += [(broker, False) for broker in entry.adding]
    return [_throttle(partition, broker, throttles, leads=leads) for broker, leads in sides]


def _throttle(
    partition: TopicPartition, broker: BrokerId, throttles: ThrottlesSeen, *, leads: bool
) -> ReplicaThrottle:
    where = (partition.topic, LEADER_REPLICAS if leads else FOLLOWER_REPLICAS)
    key = (broker, LEADER_RATE if leads else FOLLOWER_RATE)
    items = throttles.lists.get(where)
    if items is not None and not {EVERY_REPLICA, f"{partition.partition}:{broker}"} & {*items}:
        return ReplicaThrottle(broker, leads, None, is_known=True)
    if key in throttles.rates and throttles.rates[key] is None:
        return ReplicaThrottle(broker, leads, None, is_known=True)
    is_known = items is not None and key in throttles.rates
    return ReplicaThrottle(
        broker, leads, throttles.rates.get(key) if is_known else None, is_known=is_known
    )
