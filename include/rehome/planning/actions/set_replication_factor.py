"""The action set_replication_factor: more or fewer replicas of each partition."""

from __future__ import annotations

from functools import partial

import numpy as np

from rehome.domain.array_types import NONE, Ints
from rehome.domain.plan.causes.move_cause import CauseCode
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.actions.placement_costs import asked_bound, least_costs, left_out
from rehome.planning.leadership.preferred_leaders import settle_leaders
from rehome.planning.limits.destinations import refuse_apart
from rehome.planning.limits.limit_checks import refuse_impossible
from rehome.planning.limits.set_trees import rack_tree
from rehome.planning.model.arrays import ClusterArrays, in_sync_of
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import (
    check_idle,
    check_replication_factor,
    partitions_in_scope,
    rack_paths,
)
from rehome.planning.placement.decrease_replication import shrink
from rehome.planning.placement.increase_replication import RingPlacer
from rehome.planning.placement.movable import named, with_source
from rehome.planning.placement.within_budget import affordable
from rehome.planning.rebalance.budget_cut import budget_of
from rehome.planning.result.lower_bounds import placement_bound
from rehome.planning.result.move_causes import all_alike
from rehome.planning.result.outcome import Outcome, largest_first


def plan_replication_factor(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The action set_replication_factor: every partition in scope gets the requested number of
    replicas.
    """
    replicas = int(request.replication_factor or 0)
    hosts = arrays.brokers.live
    scope = partitions_in_scope(arrays, request)
    has = arrays.replication_factor
    partitions = np.flatnonzero(scope & (has != replicas))
    wanted = np.full(len(scope), replicas)
    check_idle(arrays, partitions)
    partitions, lost = with_source(arrays, partitions)
    partitions, thin = _with_enough_online(arrays, partitions, replicas)
    check_replication_factor(arrays, partitions, wanted, int(hosts.sum()), "live brokers")
    grows = partitions[has[partitions] < replicas]
    refuse_apart(arrays, request, hosts, grows)
    if len(grows):
        refuse_impossible(arrays, hosts, grows, wanted)
    tree = rack_tree(
        arrays,
        rack_paths(arrays.brokers, ignore_racks=request.ignore_racks),
        hosts,
        max(replicas, arrays.rows.shape[1]),
    )
    capacity = capacities(arrays, hosts, request.weights)
    shrunk, grown = partitions[has[partitions] > replicas], partitions[has[partitions] < replicas]
    paid = affordable(
        budget_of(request),
        grown,
        partial(least_costs, arrays, tree, grown, wanted),
        lambda parts: np.lexsort((arrays.size_bytes[grown], parts, in_sync_of(arrays)[grown])),
    )
    layout = Layout(arrays, width=replicas)
    uneven = shrink(layout, tree, capacity, shrunk, replicas)
    placer = RingPlacer(layout, tree, capacity, request.tolerance, request.seed)
    for p in largest_first(layout, paid):
        placer.complete(p, replicas)
    settle_leaders(layout)

    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, paid),
        asked_bound_bytes=asked_bound(arrays, tree, grown, wanted, paid),
        reason=MoveReason.REPLICATION_FACTOR,
        causes=all_alike(CauseCode.REPLICATION_FACTOR),
        infeasible=(
            *lost,
            *thin,
            *named(arrays, uneven, Obstacle.IN_SYNC_FIRST),
            *left_out(
                Subject(SubjectKind.REPLICATION_FACTOR, str(replicas)), len(grown) - len(paid)
            ),
        ),
    )


def _with_enough_online(
    arrays: ClusterArrays, partitions: Ints, replicas: int
) -> tuple[Ints, tuple[Infeasible, ...]]:
    """The partitions that can be changed, and notes on the others: lowering them would leave an
    offline replica, because too few are online.
    """
    if arrays.offline is None:
        return partitions, ()
    online = ((arrays.rows != NONE) & ~arrays.offline)[partitions].sum(axis=1)
    enough = (online >= replicas) | (arrays.replication_factor[partitions] < replicas)
    return partitions[enough], named(arrays, partitions[~enough], Obstacle.TOO_FEW_ONLINE)
