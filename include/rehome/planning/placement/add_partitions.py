"""Brokers for added partitions (KIP-179's alterPartitionCounts) and for the partitions of new
topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import NONE
from rehome.domain.kafka import Replicas, TopicPartition
from rehome.domain.request.partition_counts import (
    AddedPartitions,
    PartitionCountsRequest,
)
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.limits.limit_checks import set_text
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.scope import brokers_with, rack_paths, shorten
from rehome.planning.placement.new_partitions import (
    NewPartitions,
    above_caps_with,
    create_replica_assignment,
    of_its_set,
    with_less_room,
)


def place(snapshot: Snapshot, request: PartitionCountsRequest, plan_id: str) -> AddedPartitions:
    """Assign brokers to the new partitions. Pure: same snapshot and request, same placement.

    :raises InvalidRequestError: lists every problem: a topic that does not exist or has that
        many partitions already, too few brokers.
    """
    problems = list[str]()
    arrays = ClusterArrays.from_snapshot(snapshot, caps=request.caps)
    arrays = apply_limits(arrays, request.caps, request.broker_sets)
    names = [str(name) for name in snapshot.topics.column("topic").to_pylist()]
    counts = dict(zip(names, snapshot.topics.column("partitions").to_pylist(), strict=True))
    existing: dict[str, int] = {}
    assignments: dict[TopicPartition, Replicas] = {}
    for new_partitions in _partitions_to_place(counts, request, problems):
        existing[new_partitions.topic] = counts.get(new_partitions.topic, 0)
        try:
            made = create_replica_assignment(arrays, new_partitions)
            assignments |= made
            arrays = with_less_room(arrays, made.values())
        except InvalidRequestError as error:
            problems += error.problems
    if problems:
        raise InvalidRequestError(problems)
    return AddedPartitions(
        plan_id,
        snapshot.cluster_id,
        snapshot.taken_at,
        existing,
        assignments,
        {topic: new.configs for topic, new in request.new_topics.items()},
    )


def broken_by_placed(
    snapshot: Snapshot, plan: AddedPartitions, request: PartitionCountsRequest
) -> list[str]:
    """A sentence for each limit of the request that partitions would break which were placed
    before, maybe with other limits: sets of their topics, caps of brokers.

    :param snapshot: newer than the one that they were placed on. Brokers and topics that it does
        not know are left out: other checks refuse these.
    """
    arrays = ClusterArrays.from_snapshot(snapshot, caps=request.caps)
    arrays = apply_limits(arrays, request.caps, request.broker_sets)
    limits = arrays.limits
    if limits is None:
        return []
    index, problems = arrays.brokers.index(), list[str]()
    for topic in plan.existing:
        replicas = [tuple(b for b in row if b in index) for row in plan.of_topic(topic)]
        placed = [row for row in replicas if row]
        rows = [[index[broker] for broker in row] for row in placed]
        allowed = of_its_set(arrays, topic)
        outside = sorted({b for row in rows for b in row if not allowed[b]})
        problems += [
            f"{topic}: broker {arrays.brokers.ids[b]} is not of "
            f"{set_text(limits, limits.group_of_name(arrays.topics, topic))}."
            for b in outside
        ]
        problems += above_caps_with(arrays, topic, rows)
        arrays = with_less_room(arrays, placed)
    full = np.flatnonzero(arrays.brokers.headroom_bytes <= 0).tolist()
    taking = {broker for row in plan.assignments.values() for broker in row}
    problems += [
        f"Broker {broker} has no log dir with room by its cap on disks."
        for broker in arrays.brokers.ids[full].tolist()
        if broker in taking and request.caps and request.caps.of(broker).disk_fraction is not None
    ]
    return shorten(problems)


def unevenly_placed(
    snapshot: Snapshot, plan: AddedPartitions, request: PartitionCountsRequest
) -> list[TopicPartition]:
    """New partitions whose replicas, chosen by a person, are not spread over racks as evenly as
    the brokers of their topic's set allow. Those that are placed by the rings are.
    """
    arrays = ClusterArrays.from_snapshot(snapshot, caps=request.caps)
    arrays = apply_limits(arrays, request.caps, request.broker_sets)
    index, brokers = arrays.brokers.index(), arrays.brokers
    hosts = brokers.takes & ~brokers_with(brokers, request.exclude_brokers)
    if request.destinations:
        hosts &= brokers_with(brokers, request.destinations)
    paths, partitions = rack_paths(brokers, ignore_racks=request.ignore_racks), []
    for topic in sorted(request.assignments.keys() & plan.existing.keys()):
        rows = [[index[b] for b in row if b in index] for row in plan.of_topic(topic)]
        widest = max(map(len, rows))
        tree = RackTree(paths, hosts & of_its_set(arrays, topic), widest)
        padded = np.array([row + [NONE] * (widest - len(row)) for row in rows], np.int32)
        first = plan.existing[topic]
        partitions += [
            TopicPartition(topic, first + number)
            for number in np.flatnonzero(tree.violations(padded)).tolist()
        ]
    return partitions


def _partitions_to_place(
    counts: Mapping[str, int], request: PartitionCountsRequest, problems: list[str]
) -> Iterator[NewPartitions]:
    """The partitions to place; what cannot be placed is added to ``problems``."""
    of = partial(
        NewPartitions,
        destinations=request.destinations,
        exclude_brokers=request.exclude_brokers,
        ignore_racks=request.ignore_racks,
        force_simple_assignment=request.force_simple_assignment,
        seed=request.seed,
    )
    for topic, total in request.totals.items():
        there = counts.get(topic)
        if there is None:
            problems.append(f"There is no topic {topic!r}, or it is hidden from this principal.")
        elif total <= there:
            problems.append(
                f"{topic} has {count_text(there, 'partition')} already, and {total} were "
                "asked for: partitions can only be added."
            )
        else:
            yield of(topic, total - there, given=request.assignments.get(topic, ()))
    for topic, new in request.new_topics.items():
        if topic in counts:
            problems.append(f"There is a topic {topic!r} already: it is not created again.")
        else:
            given = request.assignments.get(topic, ())
            yield of(topic, new.partitions, new.replication_factor, given=given)
