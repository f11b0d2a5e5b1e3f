"""What of a plan is in flight at a time, and whether what throttles it was there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, Replicas, TopicPartition
from world.history import OTHERS, Alter
from world.judge.configs import Configs, Moment, items
from world.judge.placement import Partitions, target_of
from world.judge.violations import Kind, Violation
from world.kafka.metadata import Partition, PartitionKey

LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
UNSEEN_S = 75.0
"""A poll, what it leads to, and the quota's window: so long a copy may lack its throttle."""


Side = Callable[[Moment], str | None]
ACTUAL: Side = attrgetter("actual")
WANTED: Side = attrgetter("wanted")


@dataclass(frozen=True, slots=True)
class Span:
    """From a time to another, in seconds since the world began."""

    since: float
    until: float

    @property
    def lasts_s(self) -> float:
        """Its length."""
        return self.until - self.since


def in_flight(
    partitions: Partitions, lists: Mapping[PartitionKey, frozenset[Replicas]], when: float
) -> set[PartitionKey]:
    """Moves of a plan that the controllers list at a time.

    :param lists: what it may lead each partition to.
    """
    found = set()
    for key, of_plan in lists.items():
        state = partitions.at(key, when) if key in partitions.states else None
        if state is not None and state.reassigning and target_of(state) in of_plan:
            found.add(key)
    return found


def unthrottled(
    partitions: Partitions,
    configs: Configs,
    lists: Mapping[PartitionKey, frozenset[Replicas]],
    able: list[Span],
) -> Iterator[Violation]:
    """Copies that lacked their throttle for longer than it takes to see it.

    :param lists: as :func:`in_flight` takes them.
    :param able: when something of ours was able to run that drives the plan.
    """
    for key, of_plan in lists.items():
        for lacking in _lacking(partitions, configs, key, of_plan):
            longest = max((_common(lacking, span) for span in able), default=0.0)
            if longest > UNSEEN_S:
                name = f"{partitions.names[key.topic_id]}-{key.number}"
                text = f"{name} was copied for {longest:.0f} s without its throttle"
                yield Violation(Kind.UNTHROTTLED, name, text, lacking.since)
                break


def foreign_unthrottled(
    partitions: Partitions,
    configs: Configs,
    alters: Collection[Alter],
    ours: Collection[PartitionKey],
) -> Iterator[Violation]:
    """Copies of others that lost a throttle that others want, because of what we have written, and
    could have read.

    :param ours: partitions of our plans: whose copy one of these is cannot be told.
    """
    theirs = {alter.partition for alter in alters if alter.owner == OTHERS and alter.target}
    for key, placed in partitions.states.items():
        name = TopicPartition(partitions.names[key.topic_id], key.number)
        if key in ours or name not in theirs:
            continue
        changes = {each.at for each in placed}
        changes |= {moment.at for known in configs.keys.values() for moment in known.moments}
        for when in sorted(changes):
            state = partitions.at(key, when)
            if state is None or not set(state.adding) - set(state.isr):
                continue
            wanted = _throttled(configs, partitions, key, state, when, WANTED)
            if not wanted or _is_lost_unseen(configs, name, when):
                continue
            if not _throttled(configs, partitions, key, state, when):
                text = f"{name} is copied by others, and the throttle that they want is not there"
                yield Violation(Kind.FOREIGN_UNTHROTTLED, str(name), text, when)
                break


def _is_lost_unseen(configs: Configs, partition: TopicPartition, when: float) -> bool:
    """Whether replicas of a partition are off a list since we took them, and could not have read
    them there.
    """
    topic, of = ConfigResource.topic(partition.topic), f"{partition.partition}:"
    lists = (configs.keys.get((topic, key)) for key in (LEADER_LIST, FOLLOWER_LIST))
    moments = (known.between(when, when)[-1] for known in lists if known)
    return any(item.startswith(of) for moment in moments for item in moment.lost_unseen)


def _common(one: Span, other: Span) -> float:
    return min(one.until, other.until) - max(one.since, other.since)


def _lacking(
    partitions: Partitions, configs: Configs, key: PartitionKey, of_plan: frozenset[Replicas]
) -> Iterator[Span]:
    """Spans in which a move copies, and neither side of it is throttled."""
    changes = {placed.at for placed in partitions.states.get(key, ())}
    changes |= {moment.at for known in configs.keys.values() for moment in known.moments}
    since: float | None = None
    for when in sorted(changes):
        state = partitions.at(key, when)
        copies = (
            state is not None
            and bool(set(state.adding) - set(state.isr))
            and target_of(state) in of_plan
        )
        lacks = (
            copies and state is not None and not _throttled(configs, partitions, key, state, when)
        )
        if lacks and since is None:
            since = when
        elif not lacks and since is not None:
            yield Span(since, when)
            since = None
    if since is not None:
        yield Span(since, max(changes))


def _throttled(
    configs: Configs,
    partitions: Partitions,
    key: PartitionKey,
    state: Partition,
    when: float,
    of: Side = ACTUAL,
) -> bool:
    topic = partitions.names[key.topic_id]

    def listed(list_key: str, broker: BrokerId) -> bool:
        return is_listed(configs, (topic, list_key), key.number, broker, when, of)

    def ruled(rate_key: str, broker: BrokerId) -> bool:
        return rate_of(configs, rate_key, broker, when, of) is not None

    copying = set(state.adding) - set(state.isr)
    followers = all(listed(FOLLOWER_LIST, b) and ruled(FOLLOWER_RATE, b) for b in copying)
    leader = state.leader
    if leader is None:
        return True
    return followers or (listed(LEADER_LIST, leader) and ruled(LEADER_RATE, leader))


def is_listed(
    configs: Configs,
    where: tuple[str, str],
    partition: int,
    broker: BrokerId,
    when: float,
    of: Side,
) -> bool:
    """Whether a replica is on a throttle list of a topic at a time.

    :param where: the topic, and the list's key.
    """
    topic, list_key = where
    there = items(_value(configs, ConfigResource.topic(topic), list_key, when, of))
    return "*" in there or f"{partition}:{broker}" in there


def rate_of(configs: Configs, rate_key: str, broker: BrokerId, when: float, of: Side) -> str | None:
    """The rate that holds for a broker at a time: its own, or that of all."""
    own = _value(configs, ConfigResource.broker(broker), rate_key, when, of)
    return own or _value(configs, ConfigResource.cluster_default(), rate_key, when, of)


def _value(
    configs: Configs, resource: ConfigResource, key: str, when: float, of: Side
) -> str | None:
    known = configs.keys.get((resource, key))
    return None if known is None else of(known.between(when, when)[-1])
