"""Planning on where a plan on its own result would move something.

A search that leaves some broker outside of its bands may find a better end from another beginning,
and its own result is one. So a small cluster's plan takes in what plans on its result would do,
until there is nothing more. Each of those brings brokers closer to their bands, or leaders to their
shares, so that it ends; what is copied is counted from where the cluster is now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from include.domain.array_types import UNLIMITED
from include.planning.model.arrays import ClusterArrays, is_new
from include.planning.model.in_sync import with_rows
from include.planning.model.layout import Layout

UP_TO = 10_000
"""Slots up to which that is done: each look takes as long as a plan."""

MOST_PLANS = 20
"""Plans that are taken in at most."""


def plan_on(
    layout: Layout, again: Callable[[ClusterArrays], Layout], finish: Callable[[], bool]
) -> None:
    """Go on from a finished layout, in place, until planning again would change nothing.

    It goes no further than disks allow: what further plans copy has to fit in beside everything
    that is there now.

    :param again: the finished layout of a plan that begins with such a cluster.
    :param finish: what follows the moving of replicas; whether it took some back, which ends it.
    """
    for _ in range(MOST_PLANS if layout.rows.size <= UP_TO else 0):
        if not len(layout.changed()):
            return
        then = again(carried_out(layout))
        if not len(then.changed()):
            return
        before = layout.rows.copy()
        layout.lay_out(then.rows)
        if len(layout.overfull()):
            layout.lay_out(before)
            return
        if is_new(then.rows, then.origin).any() and finish():
            return


def carried_out(layout: Layout) -> ClusterArrays:
    """The cluster once a layout is carried out, its preferred leaders leading."""
    arrays, rows = layout.arrays, layout.rows
    leader = arrays.leader.copy()
    changed = layout.changed()
    leader[changed] = rows[changed, 0]
    brokers, held = arrays.brokers, arrays.load(layout.origin, layout.size)
    before, after = (
        brokers.headroom_bytes,
        np.maximum(brokers.headroom_bytes + held - layout.load, 0),
    )
    # What comes and goes is taken to do so on a broker's emptiest volume.
    headrooms, every = brokers.headrooms.copy(), np.arange(len(before))
    emptiest = headrooms.argmax(axis=1)
    change = np.where(before < UNLIMITED, after - before, 0)
    headrooms[every, emptiest] = np.maximum(headrooms[every, emptiest] + change, 0)
    healed = with_rows(arrays, rows.copy())
    return replace(healed, brokers=brokers.with_headrooms(headrooms), leader=leader)
