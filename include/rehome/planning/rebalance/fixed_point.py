"""Fixed point: repeat planning until planning on the result changes nothing.

If a search leaves some broker outside its bands, another start may lead further, and its own result
is such a start. So a small cluster's plan includes what later plans would do, until there is
nothing left to do. Each repetition brings brokers closer to their bands, or leaders to their
shares, so the loop ends. Bytes copied count from the present state of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rehome.domain.array_types import UNLIMITED
from rehome.planning.effort.work import SearchWork
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.model.in_sync import with_rows
from rehome.planning.model.layout import Layout


@dataclass(frozen=True, slots=True)
class FixedPointOptions:
    """How often planning is repeated.

    :param up_to: size, in replicas, up to which that is done: each repetition takes as long as a
        plan.
    :param most_plans: the most repetitions.
    :param work_per_position: work that a repetition counts in addition to what its search scores:
        arrays, sources of copies, leaders.
    """

    up_to: int = 10_000
    most_plans: int = 20
    work_per_position: int = 2_000


FIXED_POINT = FixedPointOptions()


def plan_on(
    layout: Layout,
    again: Callable[[ClusterArrays], Layout],
    finish: Callable[[], bool],
    work: SearchWork,
) -> None:
    """Continue from a finished layout, in place, until planning again would change nothing.

    Disk space limits the repetitions: their copies must fit in addition to everything that is on
    the disks now.

    :param again: plans on a cluster; returns the finished layout.
    :param finish: the steps after the search; returns whether they took moves back, which ends the
        loop.
    :param work: of the search; the loop ends when its budget is spent.
    """
    for _ in range(FIXED_POINT.most_plans if layout.rows.size <= FIXED_POINT.up_to else 0):
        if not len(layout.changed_partitions()) or work.is_spent():
            return
        if work.is_used_up():
            return
        work.score(FIXED_POINT.work_per_position * layout.rows.size)
        then = again(carried_out(layout))
        if not len(then.changed_partitions()):
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
    changed = layout.changed_partitions()
    leader[changed] = rows[changed, 0]
    brokers, load_before = arrays.brokers, arrays.load(layout.origin, layout.size)
    before, after = (
        brokers.headroom_bytes,
        np.maximum(brokers.headroom_bytes + load_before - layout.load, 0),
    )
    # All changes are assumed on a broker's emptiest volume.
    headrooms, every = brokers.headrooms.copy(), np.arange(len(before))
    emptiest = headrooms.argmax(axis=1)
    change = np.where(before < UNLIMITED, after - before, 0)
    headrooms[every, emptiest] = np.maximum(headrooms[every, emptiest] + change, 0)
    healed = with_rows(arrays, rows.copy())
    return replace(healed, brokers=brokers.with_headrooms(headrooms), leader=leader)
