"""Brokers for the replicas of new partitions: KIP-879's CreateReplicaAssignment.

New partitions are empty and their later load is unknown, so brokers are taken in turn, not by load.
Partitions added to a topic continue the rings of its existing ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from rehome.cluster.snapshot.columns import rack_path
from rehome.domain.array_types import NONE, UNLIMITED, Floats, Mask, Rows
from rehome.domain.kafka import BrokerId, Replicas, TopicPartition
from rehome.domain.resources import LED, PLACED, Resource
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError
from rehome.planning.limits.apply_limits import loads_of
from rehome.planning.model.arrays import BrokerArrays, ClusterArrays
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.scope import brokers_with, rack_paths, raise_if
from rehome.planning.placement.rack_spread import NoPlaceError, choose
from rehome.planning.placement.ring import Ring


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """What is to be created: partitions of a new topic, or more of one that exists.

    :param count: how many partitions are new.
    :param replication_factor: of the new ones; None = that of the topic's partition 0.
    :param exclude_brokers: ids that get no replica.
    :param ignore_racks: place as if no broker had a rack.
    :param force_simple_assignment: use Kafka's own striping, which ignores racks.
    :param seed: start of the rings for a new topic.
    :param destinations: ids of the only brokers that get replicas; empty = any.
    :param given: replicas of each new partition, where a person has chosen them; () = not so.
    """

    topic: str
    count: int
    replication_factor: int | None = None
    exclude_brokers: tuple[BrokerId, ...] = ()
    ignore_racks: bool = False
    force_simple_assignment: bool = False
    seed: int = 0
    given: tuple[Replicas, ...] = ()
    destinations: tuple[BrokerId, ...] = ()


def assign_replicas(
    racks: Mapping[BrokerId, str | None],
    partitions: int,
    replication_factor: int,
    *,
    force_simple_assignment: bool = False,
    seed: int = 0,
) -> dict[int, Replicas]:
    """The replicas of a topic that is not created: KIP-879's createReplicaAssignment, for brokers
    of one's choice and without a cluster.

    :param racks: the brokers that get replicas, each with its ``broker.rack``, such as
        ``/dc0/r1``; None = it has none: these are one more rack where others have one.
    :param partitions, replication_factor: of the topic, 1 or more.
    :param force_simple_assignment: Kafka's own striping, which ignores racks.
    :param seed: where the rings begin.
    :returns: number of a partition → its brokers, the preferred leader first.
    :raises InvalidRequestError: no partitions, no replicas, or fewer brokers than replicas.
    """
    arrays = _of_brokers_alone(racks)
    request = NewPartitions(
        "topic",
        partitions,
        replication_factor,
        force_simple_assignment=force_simple_assignment,
        seed=seed,
    )
    assignment = create_replica_assignment(arrays, request)
    return {partition.partition: replicas for partition, replicas in assignment.items()}


def _of_brokers_alone(racks: Mapping[BrokerId, str | None]) -> ClusterArrays:
    """A cluster of these brokers that holds nothing; all are alive, and their disks not known."""
    ids = sorted(racks)
    every, none = np.ones(len(ids), bool), np.zeros(0, np.int64)
    brokers = BrokerArrays(
        ids=np.array(ids, np.int64),
        live=every,
        takes=every,
        rack_paths=tuple(tuple(rack_path(racks[broker])) for broker in ids),
        capacity_bytes=np.zeros(len(ids), np.int64),
        headroom_bytes=np.full(len(ids), UNLIMITED),
    )
    nowhere, nothing = np.full((0, 1), NONE, np.int32), np.zeros(0, bool)
    return ClusterArrays(
        brokers=brokers,
        topics=(),
        internal=nothing,
        topic_of=none,
        partition_of=none,
        rows=nowhere,
        log_dirs=nowhere,
        log_dir_names=(),
        size_bytes=none,
        leader=none.astype(np.int32),
        in_flight=nothing,
    )


def create_replica_assignment(
    arrays: ClusterArrays, request: NewPartitions
) -> dict[TopicPartition, Replicas]:
    """Brokers of each new partition, preferred leader first; numbers follow the existing ones.

    Only brokers are used that are live, not excluded, and have a log dir that is neither offline
    nor cordoned and has free space. Deterministic: same cluster, request and seed, same assignment.

    :raises InvalidRequestError: lists every problem: no partitions, no replication factor or
        another than partition 0 has (Kafka refuses it), too few brokers, an unknown broker. Of
        replicas that were given also: another number of lists, or of replicas, and brokers that
        cannot take them.
    """
    existing = _existing(arrays, request.topic)
    brokers = arrays.brokers
    hosts = brokers.takes & (brokers.headroom_bytes > 0)
    hosts &= ~brokers_with(brokers, request.exclude_brokers)
    if request.destinations:
        hosts &= brokers_with(brokers, request.destinations)
    hosts &= of_its_set(arrays, request.topic)
    replicas = request.replication_factor or (len(existing[0]) if existing else 0)
    raise_if(_problems(request, replicas, existing, int(hosts.sum())))
    if request.given:
        raise_if(_problems_of_given(brokers, request, replicas, hosts))
        index = brokers.index()
        rows = [[index[broker] for broker in row] for row in request.given]
    elif request.force_simple_assignment:
        rows = _stripe(brokers, request, replicas, existing, hosts)
    else:
        rows = _in_turn(arrays, request, replicas, existing, hosts)
    raise_if(above_caps_with(arrays, request.topic, rows))
    return {
        TopicPartition(request.topic, len(existing) + number): tuple(brokers.ids[row].tolist())
        for number, row in enumerate(rows)
    }


def _existing(arrays: ClusterArrays, topic: str) -> list[list[int]]:
    """Dense indexes of the brokers of the topic's partitions; empty for a new topic."""
    return [row[row != NONE].tolist() for row in _rows_of(arrays, topic)]


def _rows_of(arrays: ClusterArrays, topic: str) -> Rows:
    if topic not in arrays.topics:
        return arrays.rows[:0]
    rows: Rows = arrays.rows[arrays.topic_of == arrays.topics.index(topic)]
    return rows


def _problems(
    request: NewPartitions, replicas: int, existing: Sequence[Sequence[int]], hosts: int
) -> list[str]:
    problems = []
    if request.count < 1:
        problems.append(f"{request.topic}: the number of new partitions must be at least 1.")
    if replicas < 1:
        problems.append(f"{request.topic} is a new topic: it needs a replication factor.")
    if existing and replicas != len(existing[0]):
        problems.append(
            f"{request.topic}: new partitions need {count_text(len(existing[0]), 'replica')}, as "
            f"partition 0 has; {replicas} were asked for. Change the replication factor first."
        )
    if replicas > hosts:
        problems.append(
            f"{request.topic} is to have {count_text(replicas, 'replica')} per partition, but only "
            f"{count_text(hosts, 'broker')} can take them: live, not excluded, a destination "
            "where there are some, of the topic's broker set, and with a log dir that takes "
            "replicas."
        )
    return problems


def _problems_of_given(
    brokers: BrokerArrays, request: NewPartitions, replicas: int, hosts: Mask
) -> list[str]:
    """What is wrong with replicas that a person has chosen, a sentence for each list."""
    topic, index, problems = request.topic, brokers.index(), []
    if len(request.given) != request.count:
        problems.append(
            f"{topic} is to get {count_text(request.count, 'new partition')}, and assignments has "
            f"{count_text(len(request.given), 'list')} for it: one for each is needed."
        )
    for row in request.given:
        shown = f"assignments of {topic}: {list(row)}"
        if len(row) != replicas:
            problems.append(
                f"{shown} has {count_text(len(row), 'broker')}, and the topic has "
                f"{count_text(replicas, 'replica')} per partition."
            )
        if unknown := [broker for broker in row if broker not in index]:
            problems.append(f"{shown} names broker {unknown[0]}, which the cluster does not have.")
        problems += [
            f"{shown}: broker {broker} cannot take it: it is not live, is excluded, is no "
            "destination, is of another broker set, or has no log dir that takes replicas."
            for broker in row
            if broker in index and not hosts[index[broker]]
        ]
    return problems


def _start(request: NewPartitions) -> np.random.Generator:
    """A start that differs by topic and is the same on every machine."""
    return np.random.default_rng([request.seed, crc32(request.topic.encode())])


def of_its_set(arrays: ClusterArrays, topic: str) -> Mask:
    """(B,) brokers of the topic's set; a new topic's set follows from its name."""
    limits = arrays.limits
    if limits is None:
        return np.ones(len(arrays.brokers.ids), bool)
    allowed: Mask = limits.allowed[limits.group_of_name(arrays.topics, topic)]
    return allowed


def _cap_headroom(arrays: ClusterArrays) -> tuple[Floats, Floats]:
    """(B,) replicas, and leaders, that brokers may still get by their caps."""
    limits = arrays.limits
    if limits is None:
        return (np.full(len(arrays.brokers.ids), np.inf),) * 2
    loads = [loads_of(arrays, arrays.rows, r) for r in (Resource.REPLICAS, Resource.LEADERS)]
    return (
        limits.placed[PLACED.index(Resource.REPLICAS)] - loads[0],
        limits.led[LED.index(Resource.LEADERS)] - loads[1],
    )


def above_caps_with(arrays: ClusterArrays, topic: str, rows: Sequence[Sequence[int]]) -> list[str]:
    """Problems: brokers that new partitions of a topic would take above their caps.

    :param rows: dense indexes of their brokers, the preferred leader first.
    """
    headroom, lead = _cap_headroom(arrays)
    count = len(headroom)
    more = np.bincount([b for row in rows for b in row], minlength=count)
    leads = np.bincount([row[0] for row in rows], minlength=count)
    return [
        f"{topic}: broker {arrays.brokers.ids[b]} would get {int(here[b])} {what} more, and "
        f"its cap leaves room for {max(0, int(left[b]))}."
        for left, here, what in ((headroom, more, "replicas"), (lead, leads, "leaders"))
        for b in np.flatnonzero((here > left) & (here > 0)).tolist()
    ]


def with_less_room(arrays: ClusterArrays, rows: Iterable[Replicas]) -> ClusterArrays:
    """The cluster with lower caps, by what was placed already."""
    limits = arrays.limits
    if limits is None:
        return arrays
    placed, led, index = limits.placed.copy(), limits.led.copy(), arrays.brokers.index()
    for row in rows:
        for broker in row:
            placed[PLACED.index(Resource.REPLICAS), index[broker]] -= 1
        led[LED.index(Resource.LEADERS), index[row[0]]] -= 1
    return replace(arrays, limits=replace(limits, placed=placed, led=led))


def _in_turn(
    arrays: ClusterArrays,
    request: NewPartitions,
    replicas: int,
    existing: Sequence[Sequence[int]],
    hosts: Mask,
) -> list[list[int]]:
    """Assign by the rings. Of a partition's brokers, the one that leads fewest of the topic leads.

    Without this rule, one branch could lead every partition: when all children of the root get the
    same number of replicas, the ring's pointer returns to the same child.
    """
    paths = rack_paths(arrays.brokers, ignore_racks=request.ignore_racks)
    tree = RackTree(paths, hosts, replicas)
    ring = Ring(tree, _start(request))
    ring.replay(_rows_of(arrays, request.topic))
    leads = Counter(row[0] for row in existing if row)
    rows = []
    headroom, lead = _cap_headroom(arrays)
    for _ in range(request.count):
        row = ring.visit(_choose(tree, replicas, hosts & (headroom >= 1), ring, request.topic))
        headroom[row] -= 1
        first = min(range(replicas), key=lambda place: (lead[row[place]] < 1, leads[row[place]]))
        lead[row[first]] -= 1
        rows.append(row[first:] + row[:first])
        leads[row[first]] += 1
    return rows


def _choose(tree: RackTree, replicas: int, free: Mask, ring: Ring, topic: str) -> list[int]:
    """The next brokers on the rings. If caps leave a branch without a broker: the most even set of
    the others.

    :raises InvalidRequestError: too few brokers are left.
    """
    try:
        return choose(tree, [], replicas, free, ring)
    except NoPlaceError:
        if int(free.sum()) >= replicas:
            return choose(RackTree(tree.paths, free, replicas), [], replicas, free, ring)
    raise InvalidRequestError(
        [
            f"{topic} needs {count_text(replicas, 'broker')} for a partition; "
            f"by their caps, {int(free.sum())} have room."
        ]
    )


def _stripe(
    brokers: BrokerArrays,
    request: NewPartitions,
    replicas: int,
    existing: Sequence[Sequence[int]],
    hosts: Mask,
) -> list[list[int]]:
    """Kafka's assignment without racks (kafka.admin.AdminUtils): leaders round-robin, and followers
    shifted by one more with each round.
    """
    ring = np.flatnonzero(hosts)
    size = len(ring)
    if existing:
        first = distance = int(np.searchsorted(ring, existing[0][0])) % size
    else:
        first, distance = _start(request).integers(size, size=2).tolist()
    begin, rows = len(existing), []
    for number in range(begin, begin + request.count):
        leader = first + number
        # Kafka counts the rounds that end from here on, not those of existing partitions.
        gap = distance + number // size - max(begin - 1, 0) // size
        rest = [1 + (gap + place) % (size - 1) for place in range(replicas - 1)]
        rows.append(ring[[(leader + step) % size for step in (0, *rest)]].tolist())
    return rows
