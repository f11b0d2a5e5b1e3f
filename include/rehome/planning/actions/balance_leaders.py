"""The action balance_leaders: even out preferred leaders by the order of replicas."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from rehome.domain.array_types import Mask
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import LOOSE, Resource, led_resources
from rehome.planning.leadership.leader_balance import (
    LedShares,
    balance_leaders_by_share,
    change_what_still_helps,
    unmet,
)
from rehome.planning.leadership.leader_caps import keep_led_caps
from rehome.planning.leadership.min_leaders import MinLeadersRepair, RequestedMinLeaders
from rehome.planning.leadership.preferred_leaders import balance_leaders
from rehome.planning.limits.set_trees import fair_capacity
from rehome.planning.limits.undo_above_caps import undo_above_caps
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import partition_weight
from rehome.planning.model.scope import partitions_in_scope
from rehome.planning.placement.movable import free_to_move
from rehome.planning.rebalance.problem import tolerances_of
from rehome.planning.result.outcome import Outcome, each_by_itself, tree_of

LEADERS_TOLERANCE = 0.1
"""How far the number of leaders may be off its share so that traffic can be balanced; at least one.
"""


def plan_leaders(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The action balance_leaders: even out preferred leaders in scope, by replica order alone.

    If the history knows what leaders send, that is balanced as well, and their number within its
    tolerance.
    """
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    layout, tree = Layout(arrays), tree_of(arrays, arrays.brokers.live, request)
    shares = _shares_of_traffic(layout, tree, request)
    if shares is None:
        balance_leaders(layout, movable)
    else:
        _balance_traffic(layout, shares, movable)
    minimums = RequestedMinLeaders.of(arrays, request, arrays.brokers.live)
    evened = layout.rows[:, 0].copy()
    if minimums is not None:
        MinLeadersRepair(layout, minimums, movable).run()
    keep_led_caps(layout, movable, lower=True, minimums=minimums)
    undo_above_caps(layout)
    handed_over = layout.rows[:, 0].copy()
    if shares is not None:
        change_what_still_helps(layout, shares, movable, arrays.brokers.live, None, minimums)
    than = CauseCode.LEADS_MORE if shares is None else CauseCode.LEADS_MORE_TRAFFIC
    nowhere = np.zeros_like(arrays.brokers.live)
    ids = arrays.brokers.ids

    def cause(p: int) -> tuple[MoveCause, ...]:
        old, new = ids[[layout.origin[p, 0], layout.rows[p, 0]]].tolist()
        lead = layout.rows[p, 0]
        is_even = lead == evened[p] or lead != handed_over[p]
        code = than if is_even else CauseCode.MIN_LEADERS
        return (MoveCause(code, old, new),)

    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=0,
        reason=MoveReason.LEADER,
        causes=each_by_itself(cause),
        infeasible=(
            *infeasible,
            *(unmet(layout, shares, handed_over=minimums is not None) if shares else ()),
            *(minimums.infeasible(arrays) if minimums else ()),
            *(minimums.missed_notes(layout, nowhere, cut_by_budget=False) if minimums else ()),
        ),
        min_leaders=minimums.figures(layout, ()) if minimums else None,
    )


def _balance_traffic(layout: Layout, shares: LedShares, movable: Mask) -> None:
    """Bring leaders to their shares, in place: from the order as it is, and from equal numbers; the
    result that is closer counts.
    """
    hosts, start = layout.arrays.brokers.live, layout.rows.copy()
    attempts = []
    for equal_first in (False, True):
        layout.lay_out(start)
        if equal_first:
            balance_leaders(layout, movable)
        balance_leaders_by_share(layout, shares, movable, hosts)
        attempts.append((shares.beyond(shares.load(layout.rows[:, 0])), layout.rows.copy()))
        if attempts[0][0] <= 0:
            return
    layout.lay_out(min(attempts, key=itemgetter(0))[1])


def _shares_of_traffic(
    layout: Layout, tree: RackTree, request: ReassignmentRequest
) -> LedShares | None:
    """Equal shares of leaders and of their traffic; None if no traffic is known and the request
    gives no tolerance.
    """
    arrays = layout.arrays
    tolerances, live = tolerances_of(request, arrays), arrays.brokers.live.astype(np.float64)
    resources = led_resources(request.tolerances)
    if Resource.LEADERS.value not in request.tolerances:
        if all(tolerances[r] == LOOSE for r in resources if r is not Resource.LEADERS):
            return None
        tolerances[Resource.LEADERS] = LEADERS_TOLERANCE
    capacity = np.stack(
        [
            fair_capacity(arrays, tree, live, partition_weight(arrays, resource))
            for resource in resources
        ]
    )
    return LedShares.of(layout, capacity, tolerances)
