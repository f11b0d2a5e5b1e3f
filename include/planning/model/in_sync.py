"""Which replicas of a row are in the ISR, and which of its brokers may lead it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from include.domain.array_types import NONE, Ints, Mask, Rows
from include.planning.model.arrays import ClusterArrays


def in_sync(arrays: ClusterArrays, partitions: Ints, rows: Rows) -> Mask:
    """(n, R) slots of these partitions' rows whose broker has a replica in the ISR now."""
    return _held(arrays, partitions, rows, arrays.in_sync)


def may_lead(arrays: ClusterArrays, partitions: Ints, rows: Rows) -> Mask:
    """(n, R) slots whose broker can lead once the plan is carried out: what exists and is out of
    the ISR cannot; what is copied is in it by then.
    """
    can: Mask = rows != NONE
    if arrays.in_sync is not None and not arrays.all_in_sync:
        can &= ~_held(arrays, partitions, rows, ~arrays.in_sync)
    return can


def with_rows(arrays: ClusterArrays, rows: Rows) -> ClusterArrays:
    """The cluster with its replicas where ``rows`` has them; what is new is in sync."""
    every = np.arange(len(rows))
    offline = None if arrays.offline is None else _held(arrays, every, rows, arrays.offline)
    in_sync = None if arrays.in_sync is None else may_lead(arrays, every, rows)
    return replace(arrays, rows=rows, in_sync=in_sync, offline=offline)


def _held(arrays: ClusterArrays, partitions: Ints, rows: Rows, which: Mask | None) -> Mask:
    """(n, R) slots whose broker holds a replica that ``which`` (P, R) names; None = any does."""
    found: Mask = np.zeros(rows.shape, bool)
    if which is not None and not which[partitions].any():
        return found
    origin = arrays.rows[partitions]
    for number, before in enumerate(origin.T):  # column by column: see arrays.replica_counts
        chosen = before != NONE
        if which is not None:
            chosen &= which[partitions, number]
        for slots, now in zip(found.T, rows.T, strict=True):
            slots |= chosen & (now == before)
    return found
