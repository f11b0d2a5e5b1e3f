"""The action elect_preferred: elections of preferred leaders, nothing else."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.in_sync import in_sync
from rehome.planning.model.layout import Layout
from rehome.planning.model.scope import partitions_in_scope
from rehome.planning.placement.movable import notes_of
from rehome.planning.result.outcome import Outcome, each_by_itself, tree_of


def plan_elections(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Elect the preferred leader of each partition in scope that another broker leads, if it is in
    sync. No replica moves and no order changes.
    """
    rows, leader = arrays.rows, arrays.leader
    led_otherwise = (rows[:, 0] != NONE) & (leader != rows[:, 0])
    meant = partitions_in_scope(arrays, request) & led_otherwise
    able = in_sync(arrays, np.arange(len(rows)), rows[:, :1])[:, 0]
    busy, idle = meant & arrays.in_flight, meant & ~arrays.in_flight
    tree, ids = tree_of(arrays, arrays.brokers.live, request), arrays.brokers.ids

    def cause(p: int) -> tuple[MoveCause, ...]:
        preferred, leads = int(ids[rows[p, 0]]), leader[p]
        now = None if leads == NONE else int(ids[leads])
        return (MoveCause(CauseCode.PREFERRED_LEADER, preferred, now),)

    return Outcome(
        layout=Layout(arrays),
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=0,
        reason=MoveReason.ELECTION,
        causes=each_by_itself(cause),
        infeasible=(
            *notes_of(arrays, np.flatnonzero(busy), Obstacle.IN_FLIGHT),
            *notes_of(arrays, np.flatnonzero(idle & ~able), Obstacle.PREFERRED_OUT_OF_SYNC),
        ),
        elections=tuple(np.flatnonzero(idle & able).tolist()),
    )
