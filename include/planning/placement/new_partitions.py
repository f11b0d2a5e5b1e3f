"""Where the replicas of new partitions go: KIP-879's CreateReplicaAssignment.

New partitions are empty, and nothing is known of what they will hold: turns, not loads, decide.
Partitions added to a topic go on where its existing ones left the rings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from include.domain.array_types import NONE, Mask
from include.domain.kafka import BrokerId, TopicPartition
from include.planning.model.arrays import BrokerArrays, ClusterArrays
from include.planning.model.rack_tree import RackTree
from include.planning.model.scope import brokers_with, rack_paths, raise_if
from include.planning.placement.rack_spread import choose
from include.planning.placement.ring import Ring

Replicas = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """What is to be created: partitions of a new topic, or more of one that exists.

    :param count: how many partitions are new.
    :param replication_factor: of the new ones; None = that of the topic's partition 0.
    :param exclude_brokers: ids that get none of them.
    :param ignore_racks: place as if no broker had a rack.
    :param force_simple_assignment: by Kafka's own striping, which knows no racks.
    :param seed: where the first partition of a new topic begins.
    """

    topic: str
    count: int
    replication_factor: int | None = None
    exclude_brokers: tuple[BrokerId, ...] = ()
    ignore_racks: bool = False
    force_simple_assignment: bool = False
    seed: int = 0


def create_replica_assignment(
    arrays: ClusterArrays, wanted: NewPartitions
) -> dict[TopicPartition, Replicas]:
    """Brokers of each new partition, preferred leader first; numbers follow the existing ones.

    Only on brokers that are live, not excluded, and have a log dir that is neither offline nor
    cordoned and has room. Deterministic: same cluster, wish and seed, same assignment.

    :raises InvalidRequestError: lists every problem: no partitions, no replication factor or
        another than partition 0 has (Kafka refuses it), too few brokers, an unknown broker,
        racks on some brokers only.
    """
    existing = _existing(arrays, wanted.topic)
    brokers = arrays.brokers
    hosts = brokers.takes & (brokers.room_bytes > 0)
    hosts &= ~brokers_with(brokers, wanted.exclude_brokers)
    replicas = wanted.replication_factor or (len(existing[0]) if existing else 0)
    raise_if(_problems(wanted, replicas, existing, int(hosts.sum())))
    if wanted.force_simple_assignment:
        rows = _striped(brokers, wanted, replicas, existing, hosts)
    else:
        rows = _in_turn(brokers, wanted, replicas, existing, hosts)
    return {
        TopicPartition(wanted.topic, len(existing) + number): tuple(brokers.ids[row].tolist())
        for number, row in enumerate(rows)
    }


def _existing(arrays: ClusterArrays, topic: str) -> list[list[int]]:
    """Dense indexes of the brokers of the topic's partitions; empty for a new topic."""
    if topic not in arrays.topics:
        return []
    rows = arrays.rows[arrays.topic_of == arrays.topics.index(topic)]
    return [row[row != NONE].tolist() for row in rows]


def _problems(
    wanted: NewPartitions, replicas: int, existing: Sequence[Sequence[int]], hosts: int
) -> list[str]:
    problems = []
    if wanted.count < 1:
        problems.append(f"{wanted.topic}: the number of new partitions must be at least 1.")
    if replicas < 1:
        problems.append(f"{wanted.topic} is a new topic: it needs a replication factor.")
    if existing and replicas != len(existing[0]):
        problems.append(
            f"{wanted.topic}: new partitions need {len(existing[0])} replicas, as partition 0 "
            f"has; {replicas} were asked for. Change the replication factor first."
        )
    if replicas > hosts:
        problems.append(
            f"{wanted.topic} is to have {replicas} replicas per partition, but only {hosts} "
            "brokers are live, not excluded, and have a log dir with room that takes replicas."
        )
    return problems


def _start(wanted: NewPartitions) -> np.random.Generator:
    """Another beginning for each topic, the same on every machine."""
    return np.random.default_rng([wanted.seed, crc32(wanted.topic.encode())])


def _in_turn(
    brokers: BrokerArrays,
    wanted: NewPartitions,
    replicas: int,
    existing: Sequence[Sequence[int]],
    hosts: Mask,
) -> list[list[int]]:
    """By the rings. Of a partition's brokers, the one that leads fewest of the topic leads.

    When every child of the root gets the same number of replicas, the ring comes full circle,
    and without that the same branch would lead every partition.
    """
    paths = rack_paths(brokers, ignore_racks=wanted.ignore_racks)
    tree = RackTree(paths, hosts, replicas)
    ring = Ring(tree, _start(wanted))
    ring.replay(existing)
    leads = Counter(row[0] for row in existing if row)
    rows = []
    for _ in range(wanted.count):
        row = ring.visit(choose(tree, [], replicas, hosts, ring))
        first = min(range(replicas), key=lambda place: leads[row[place]])
        rows.append(row[first:] + row[:first])
        leads[row[first]] += 1
    return rows


def _striped(
    brokers: BrokerArrays,
    wanted: NewPartitions,
    replicas: int,
    existing: Sequence[Sequence[int]],
    hosts: Mask,
) -> list[list[int]]:
    """As Kafka does it without racks (kafka.admin.AdminUtils): leaders go round the brokers, and
    followers are further away from them by one with each round.
    """
    ring = np.flatnonzero(hosts)
    size = len(ring)
    if existing:
        first = distance = int(np.searchsorted(ring, existing[0][0])) % size
    else:
        first, distance = _start(wanted).integers(size, size=2).tolist()
    begin, rows = len(existing), []
    for number in range(begin, begin + wanted.count):
        leader = first + number
        # Kafka counts the rounds that end from here on, not those of existing partitions.
        gap = distance + number // size - max(begin - 1, 0) // size
        rest = [1 + (gap + place) % (size - 1) for place in range(replicas - 1)]
        rows.append(ring[[(leader + step) % size for step in (0, *rest)]].tolist())
    return rows
