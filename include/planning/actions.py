"""What each action but the rebalance does to the layout of a cluster."""

from __future__ import annotations

from functools import partial

import numpy as np

from include.cluster.snapshot import Snapshot
from include.planning.affordable import Costs, affordable
from include.planning.arrays import NONE, ClusterArrays, Floats, Ints, Mask, broker_sums
from include.planning.bounds import least_copies, placement_bound
from include.planning.budget import UNPAID_PARTITIONS, UNPAID_REPLICAS, budget_of
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
from include.planning.plan import Infeasible, MoveReason
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
    scope = partitions_in_scope(arrays, request)
    partitions = np.flatnonzero(scope & leaving.any(axis=1))
    replicas = arrays.replication_factor
    if not hosts.any():
        raise_if(["No live broker is left to take the replicas of the drained ones."])
    check_replication_factor(arrays, partitions, replicas, int(hosts.sum()), "live brokers left")
    check_movable(arrays, partitions, leaving=drained)
    tree = tree_of(arrays, hosts, request)
    leaving = leaving & scope[:, None]
    paid = affordable(
        budget_of(request),
        partitions,
        partial(_least_costs, arrays, tree, partitions, replicas),
        partial(_broker_by_broker, arrays, leaving, partitions),
    )
    layout = Layout(arrays)
    complete(layout, tree, paid, replicas, request.weights)
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
        lower_bound_bytes=placement_bound(layout, tree, paid),
        reason=MoveReason.DRAIN,
        why=why,
        infeasible=_undrained(arrays, leaving, paid),
    )


def _broker_by_broker(
    arrays: ClusterArrays, leaving: Mask, partitions: Ints, parts: Floats
) -> Ints:
    """What empties brokers one after the other, those that take the smallest part of the budget
    first; of each, the largest partitions first.

    :param leaving: (P, R) replicas that are to leave their broker.
    """
    brokers = len(arrays.brokers.ids)
    part = np.zeros(len(arrays.rows))
    part[partitions] = parts
    held = broker_sums(np.where(leaving, arrays.rows, NONE), part, brokers)
    turn = np.empty(brokers + 1, np.int64)
    turn[np.argsort(held, kind="stable")] = np.arange(brokers)
    turn[brokers] = brokers
    rows = np.where(leaving[partitions], arrays.rows[partitions], brokers)
    return np.lexsort((-arrays.size_bytes[partitions], turn[rows].min(axis=1)))


def _undrained(arrays: ClusterArrays, leaving: Mask, paid: Ints) -> tuple[Infeasible, ...]:
    """Each broker that the budget does not pay to empty, and how many replicas it keeps."""
    stays = leaving.copy()
    stays[paid] = False
    count = np.bincount(arrays.rows[stays], minlength=len(arrays.brokers.ids))
    return tuple(
        Infeasible(
            f"broker {arrays.brokers.ids[b]}",
            UNPAID_REPLICAS,
            wanted=0,
            nearest=int(count[b]),
        )
        for b in np.flatnonzero(count).tolist()
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
    tree = RackTree(
        rack_paths(arrays.brokers, ignore_racks=request.ignore_racks),
        hosts,
        max(replicas, arrays.rows.shape[1]),
    )
    capacity = capacities(arrays, hosts, request.weights)
    shrunk, grown = partitions[has[partitions] > replicas], partitions[has[partitions] < replicas]
    paid = affordable(
        budget_of(request),
        grown,
        partial(_least_costs, arrays, tree, grown, wanted),
        lambda parts: np.lexsort((arrays.size_bytes[grown], parts)),
    )
    layout = Layout(arrays, width=replicas)
    shrink(layout, tree, capacity, shrunk, replicas)
    placer = RingPlacer(layout, tree, capacity, request.tolerance, request.seed)
    for p in largest_first(layout, paid):
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
        lower_bound_bytes=placement_bound(layout, tree, paid),
        reason=MoveReason.REPLICATION_FACTOR,
        why=why,
        infeasible=_left_out(f"replication factor {replicas}", len(grown) - len(paid)),
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
    violations = tree.violations(arrays.rows)
    partitions = np.flatnonzero(movable & (violations > 0))
    replicas = arrays.replication_factor
    check_movable(arrays, partitions, leaving=np.zeros(len(hosts), bool))
    paid = affordable(
        budget_of(request),
        partitions,
        partial(_least_costs, arrays, tree, partitions, replicas),
        lambda parts: np.argsort(parts / violations[partitions], kind="stable"),
    )
    layout = Layout(arrays)
    complete(layout, tree, paid, replicas, request.weights)
    settle_leaders(layout)
    unpaid = _left_out("repair of racks", len(partitions) - len(paid))
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, paid),
        reason=MoveReason.RACK,
        why=lambda p: f"Its replicas were not spread evenly over racks; {new_places(layout, p)}.",
        infeasible=(*infeasible, *unpaid),
    )


def _left_out(target: str, unpaid: int) -> tuple[Infeasible, ...]:
    """How many of the partitions in question the budget leaves as they are, where it does."""
    return (Infeasible(target, UNPAID_PARTITIONS, wanted=0, nearest=unpaid),) if unpaid else ()


def _least_costs(arrays: ClusterArrays, tree: RackTree, partitions: Ints, replicas: Ints) -> Costs:
    """What it costs to give each of the partitions its number of replicas (P,), evenly spread."""
    least = (least_copies(tree, arrays.rows[p], int(replicas[p])) for p in partitions.tolist())
    copies = np.fromiter(least, np.int64, len(partitions))
    return np.stack([copies * arrays.size_bytes[partitions], copies]).astype(float)


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
