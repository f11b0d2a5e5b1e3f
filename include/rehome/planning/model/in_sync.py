"""Which replicas of a partition are in the ISR, and which of its brokers can lead it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask, Rows
from rehome.planning.model.arrays import ClusterArrays


def in_sync(arrays: ClusterArrays, partitions: Ints, rows: Rows) -> Mask:
    """(n, R) positions whose broker has a replica of the partition in the ISR now."""
    return _is_held(arrays, partitions, rows, arrays.in_sync)


def may_lead(arrays: ClusterArrays, partitions: Ints, rows: Rows) -> Mask:
    """(n, R) positions whose broker can lead once the plan is carried out. A replica that exists
    and is out of the ISR cannot lead. A new replica can: it joins the ISR when its copy is
    complete.
    """
    can: Mask = rows != NONE
    if arrays.in_sync is not None and not arrays.all_in_sync:
        can &= ~_is_held(arrays, partitions, rows, ~arrays.in_sync)
    return can


def with_rows(arrays: ClusterArrays, rows: Rows) -> ClusterArrays:
    """The cluster with its replicas placed as in ``rows``; new replicas are in sync."""
    every = np.arange(len(rows))
    offline = None if arrays.offline is None else _is_held(arrays, every, rows, arrays.offline)
    in_sync = None if arrays.in_sync is None else may_lead(arrays, every, rows)
    return replace(arrays, rows=rows, in_sync=in_sync, offline=offline)


def _is_held(arrays: ClusterArrays, partitions: Ints, rows: Rows, which: Mask | None) -> Mask:
    """(n, R) positions whose broker holds a replica that ``which`` (P, R) selects; None = any
    replica.
    """
    is_held: Mask = np.zeros(rows.shape, bool)
    if which is not None and not which[partitions].any():
        return is_held
    origin = arrays.rows[partitions]
    for number, before in enumerate(origin.T):  # column by column: see arrays.replica_counts
        chosen = before != NONE
        if which is not None:
            chosen &= which[partitions, number]
        for column, now in zip(is_held.T, rows.T, strict=True):
            column |= chosen & (now == before)
    return is_held
