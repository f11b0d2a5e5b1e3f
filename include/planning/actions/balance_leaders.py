"""The action balance_leaders: even out preferred leaders by the order of replicas."""

from __future__ import annotations

import numpy as np

from include.domain.plan.move import MoveReason
from include.domain.request.request import ReassignmentRequest
from include.planning.leadership.leader_caps import keep_led_caps
from include.planning.leadership.min_leaders import MinLeadersRepair, RequestedMinLeaders
from include.planning.leadership.preferred_leaders import balance_leaders
from include.planning.limits.undo_above_caps import undo_above_caps
from include.planning.model.arrays import ClusterArrays
from include.planning.model.layout import Layout
from include.planning.model.scope import partitions_in_scope
from include.planning.placement.movable import free_to_move
from include.planning.result.outcome import Outcome, tree_of


def plan_leaders(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The action balance_leaders: even out preferred leaders in scope, by replica order alone."""
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    layout, tree = Layout(arrays), tree_of(arrays, arrays.brokers.live, request)
    balance_leaders(layout, movable)
    minimums = RequestedMinLeaders.of(arrays, request, arrays.brokers.live)
    evened = layout.rows[:, 0].copy()
    if minimums is not None:
        MinLeadersRepair(layout, minimums, movable).run()
    keep_led_caps(layout, movable, lower=True, minimums=minimums)
    undo_above_caps(layout)
    nowhere = np.zeros_like(arrays.brokers.live)
    ids = arrays.brokers.ids
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=0,
        reason=MoveReason.LEADER,
        why=lambda p: (
            f"Broker {ids[layout.rows[p, 0]]} leads in place of broker {ids[layout.origin[p, 0]]}, "
            "for min_leaders; only the order of replicas changes."
            if layout.rows[p, 0] != evened[p]
            else f"Broker {ids[layout.origin[p, 0]]} leads more partitions than broker "
            f"{ids[layout.rows[p, 0]]}; only the order of replicas changes."
        ),
        infeasible=(
            *infeasible,
            *(minimums.infeasible(arrays) if minimums else ()),
            *(minimums.missed(layout, nowhere, cut_by_budget=False) if minimums else ()),
        ),
        min_leaders=minimums.figures(layout, ()) if minimums else None,
    )
