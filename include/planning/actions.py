"""What each action but the rebalance does to the layout of a cluster."""

from __future__ import annotations

import numpy as np

from include.cluster.snapshot import Snapshot
from include.planning.arrays import NONE, ClusterArrays
from include.planning.bounds import placement_bound
from include.planning.explanation import brokers_text
from include.planning.growth import RingPlacer
from include.planning.kafka_json import parse_reassignment
from include.planning.layout import Layout
from include.planning.leaders import balance_leaders, settle_leaders
from include.planning.outcome import (
    Outcome,
    complete,
    free_to_move,
    largest_first,
    left_brokers,
    new_brokers,
    new_places,
    tree_of,
)
from include.planning.plan import MoveReason
from include.planning.racks import RackTree
from include.planning.request import ReassignmentRequest
from include.planning.requested import lay_out
from include.planning.resources import capacities
from include.planning.scope import (
    brokers_named,
    check_movable,
    check_replication_factor,
    partitions_in_scope,
    rack_paths,
    raise_if,
)
from include.planning.shrink import shrink


def plan_drain(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Every replica in scope leaves the named brokers; nothing else moves."""
    drained = brokers_named(arrays, request)
    hosts = arrays.brokers.live & ~drained
    leaving = (arrays.rows != NONE) & drained[arrays.rows]
    partitions = np.flatnonzero(partitions_in_scope(arrays, request) & leaving.any(axis=1))
    replicas = arrays.replication_factor
    if not hosts.any():
        raise_if(["No live broker is left to take the replicas of the drained ones."])
    check_replication_factor(arrays, partitions, replicas, int(hosts.sum()), "live brokers left")
    check_movable(arrays, partitions, leaving=drained)
    layout, tree = Layout(arrays), tree_of(arrays, hosts, request)
    complete(layout, tree, partitions, replicas, request.weights)
    settle_leaders(layout)

    def why(p: int) -> str:
        gone = arrays.brokers.ids[[b for b in left_brokers(layout, p) if drained[b]]].tolist()
        return (
            f"{brokers_text(gone).capitalize()} {'is' if len(gone) == 1 else 'are'} drained; "
            f"{new_places(layout, p)}."
        )

    return Outcome(
        layout=layout,
        tree_before=tree_of(arrays, arrays.brokers.live, request),
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, partitions),
        reason=MoveReason.DRAIN,
        why=why,
    )


def plan_replication_factor(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Every partition in scope gets the requested number of replicas."""
    replicas = int(request.replication_factor or 0)
    hosts = arrays.brokers.live
    scope = partitions_in_scope(arrays, request)
    has = arrays.replication_factor
    partitions = np.flatnonzero(scope & (has != replicas))
    wanted = np.full(len(scope), replicas)
    check_replication_factor(arrays, partitions, wanted, int(hosts.sum()), "live brokers")
    check_movable(arrays, partitions, leaving=np.zeros(len(hosts), bool))
    layout = Layout(arrays, width=replicas)
    tree = RackTree(
        rack_paths(arrays.brokers, ignore_racks=request.ignore_racks), hosts, layout.rows.shape[1]
    )
    capacity = capacities(arrays, hosts, request.weights)
    shrink(layout, tree, capacity, partitions[has[partitions] > replicas], replicas)
    placer = RingPlacer(layout, tree, capacity, request.tolerance, request.seed)
    grown = partitions[has[partitions] < replicas]
    for p in largest_first(layout, grown):
        placer.complete(p, replicas)
    settle_leaders(layout)

    def why(p: int) -> str:
        if has[p] > replicas:
            gone = brokers_text(arrays.brokers.ids[left_brokers(layout, p)].tolist())
            return f"Replication factor {has[p]} becomes {replicas}; leaves {gone}."
        return f"Replication factor {has[p]} becomes {replicas}: {_next_in_turn(layout, p)}."

    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, grown),
        reason=MoveReason.REPLICATION_FACTOR,
        why=why,
    )


def _next_in_turn(layout: Layout, p: int) -> str:
    ids = new_brokers(layout, p)
    return (
        f"{brokers_text(ids)} {'is' if len(ids) == 1 else 'are'} next on the rings of the rack "
        "tree, branches that are fuller than their siblings passed over"
    )


def plan_racks(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Partitions in scope that are not spread as evenly as the racks allow become so."""
    hosts = arrays.brokers.live
    tree = tree_of(arrays, hosts, request)
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    partitions = np.flatnonzero(movable & (tree.violations(arrays.rows) > 0))
    replicas = arrays.replication_factor
    check_movable(arrays, partitions, leaving=np.zeros(len(hosts), bool))
    layout = Layout(arrays)
    complete(layout, tree, partitions, replicas, request.weights)
    settle_leaders(layout)
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, partitions),
        reason=MoveReason.RACK,
        why=lambda p: f"Its replicas were not spread evenly over racks; {new_places(layout, p)}.",
        infeasible=infeasible,
    )


def plan_leaders(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Preferred leaderships in scope are evened out by order alone."""
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    layout, tree = Layout(arrays), tree_of(arrays, arrays.brokers.live, request)
    balance_leaders(layout, movable)
    ids = arrays.brokers.ids
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=0,
        reason=MoveReason.LEADER,
        why=lambda p: (
            f"Broker {ids[layout.home[p, 0]]} leads more partitions than broker "
            f"{ids[layout.rows[p, 0]]}; only the order of replicas changes."
        ),
        infeasible=infeasible,
    )


def plan_requested(
    snapshot: Snapshot, arrays: ClusterArrays, request: ReassignmentRequest
) -> Outcome:
    """What the operator's own file says."""
    wanted = parse_reassignment(request.reassignment or {})
    layout, log_dirs = lay_out(snapshot, arrays, wanted)
    tree = tree_of(arrays, arrays.brokers.live, request, layout.rows.shape[1])
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=int(layout.incoming.sum()),
        reason=MoveReason.REQUESTED,
        why=lambda p: "Named in the requested reassignment.",
        log_dirs=log_dirs,
    )
