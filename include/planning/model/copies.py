"""Copies that a layout makes: which there are, and from where they are read."""

from __future__ import annotations

import numpy as np

from include.domain.array_types import NONE, Ints
from include.planning.model.arrays import fresh
from include.planning.model.layout import Layout


def sources(layout: Layout) -> Ints:
    """(P,) the broker that new replicas copy from: the leader, or the first replica."""
    leader = layout.arrays.leader
    source: Ints = np.where(leader != NONE, leader, layout.home[:, 0]).astype(np.int64)
    return source


def copies(layout: Layout) -> tuple[Ints, Ints]:
    """(n,) partition and (n,) receiving broker of every copy the plan makes."""
    partition, place = np.nonzero(fresh(layout.rows, layout.home))
    return partition, layout.rows[partition, place].astype(np.int64)
