"""Partitions that a plan cannot change, each with a note, so that they do not count as done."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask
from rehome.domain.plan.infeasible import Infeasible, Notes, Obstacle, Subject, SubjectKind
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.scope import has_source


def with_source(arrays: ClusterArrays, partitions: Ints) -> tuple[Ints, Notes]:
    """Those of the partitions that have a live leader, and a note for each of the others."""
    has = has_source(arrays, partitions)
    return partitions[has], notes_of(arrays, partitions[~has], Obstacle.NO_SOURCE)


def free_to_reorder(arrays: ClusterArrays, scope: Mask) -> tuple[Mask, Notes]:
    """The partitions in scope whose replica order can change, and notes on the others: in flight,
    or without a leader. Nothing is copied, so offline replicas do not matter.
    """
    source = has_source(arrays, np.arange(len(scope)))
    busy, lost = scope & arrays.in_flight, scope & ~arrays.in_flight & ~source
    notes = (
        *notes_of(arrays, np.flatnonzero(busy), Obstacle.IN_FLIGHT),
        *notes_of(arrays, np.flatnonzero(lost), Obstacle.NO_SOURCE),
    )
    return scope & ~busy & ~lost, notes


def free_to_move(arrays: ClusterArrays, scope: Mask) -> tuple[Mask, Notes]:
    """The partitions in scope that can be moved, and notes on the others: in flight, without a
    leader, or with an offline replica (naming its broker).
    """
    free, notes = free_to_reorder(arrays, scope)
    if arrays.offline is None:
        return free, notes
    harmed = free & arrays.offline.any(axis=1)
    brokers = np.where(arrays.offline & harmed[:, None], arrays.rows, NONE)
    count = np.bincount(brokers[brokers != NONE], minlength=len(arrays.brokers.ids))
    notes += tuple(
        Infeasible(
            Subject(SubjectKind.OFFLINE_REPLICAS, broker=int(arrays.brokers.ids[b])),
            Obstacle.LOG_DIR_FAILED if arrays.brokers.live[b] else Obstacle.BROKER_NOT_LIVE,
            n,
            0,
        )
        for b, n in enumerate(count.tolist())
        if n
    )
    return free & ~harmed, notes


def notes_of(arrays: ClusterArrays, partitions: Ints, why: Obstacle) -> Notes:
    """A note for each partition, all with the same obstacle."""
    return tuple(
        Infeasible(Subject.of_partition(arrays.partition(p)), why, 1, 0)
        for p in partitions.tolist()
    )
