"""Partitions that a plan has to leave as they are, named so that nobody takes them for done."""

from __future__ import annotations

import numpy as np

from include.planning.arrays import NONE, ClusterArrays, Ints, Mask
from include.planning.plan import Infeasible
from include.planning.scope import has_source

IN_FLIGHT = "it is being reassigned already: left alone"
NO_SOURCE = "it has no live leader to copy from: left alone"

Notes = tuple[Infeasible, ...]


def with_source(arrays: ClusterArrays, partitions: Ints) -> tuple[Ints, Notes]:
    """Those of the partitions that have a live leader, and a note for each of the others."""
    has = has_source(arrays, partitions)
    return partitions[has], named(arrays, partitions[~has], NO_SOURCE)


def free_to_move(arrays: ClusterArrays, scope: Mask) -> tuple[Mask, Notes]:
    """The partitions in scope that can be moved and need not be, and notes on the others: those in
    flight, those without a leader, and those with an offline replica, by the broker it is on.
    """
    every = np.arange(len(scope))
    source = has_source(arrays, every)
    busy, lost = scope & arrays.in_flight, scope & ~arrays.in_flight & ~source
    free = scope & ~busy & ~lost
    notes = (
        *named(arrays, np.flatnonzero(busy), IN_FLIGHT),
        *named(arrays, np.flatnonzero(lost), NO_SOURCE),
    )
    if arrays.offline is None:
        return free, notes
    harmed = free & arrays.offline.any(axis=1)
    brokers = np.where(arrays.offline & harmed[:, None], arrays.rows, NONE)
    count = np.bincount(brokers[brokers != NONE], minlength=len(arrays.brokers.ids))
    notes += tuple(
        Infeasible(f"offline replicas of broker {arrays.brokers.ids[b]}", _why(arrays, b), n, 0)
        for b, n in enumerate(count.tolist())
        if n
    )
    return free & ~harmed, notes


def _why(arrays: ClusterArrays, broker: int) -> str:
    what = "a log dir of it has failed" if arrays.brokers.live[broker] else "it is not live"
    return f"{what}: their partitions are left alone; fix_offline_replicas gives them new homes"


def named(arrays: ClusterArrays, partitions: Ints, why: str) -> Notes:
    """A note of the same text for each partition."""
    return tuple(Infeasible(str(arrays.partition(p)), why, 1, 0) for p in partitions.tolist())
