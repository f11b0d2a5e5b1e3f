"""Actions that complete replica sets or reorder them: drain, set_replication_factor, repair_racks,
balance_leaders, reassign.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from include.cluster.snapshot.model import Snapshot
from include.domain.array_types import NONE, Floats, Ints, Mask
from include.domain.plan.figures import TargetPrice
from include.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from include.domain.plan.kafka_json import parse_reassignment
from include.domain.plan.move import MoveReason
from include.domain.request.param_types import TOPIC_SPREAD
from include.domain.request.request import ReassignmentRequest, SpreadOf, spread_tolerance
from include.domain.resources import Resource
from include.domain.text import brokers_text
from include.planning.actions.reassign import lay_out
from include.planning.leadership.leader_caps import keep_led_caps
from include.planning.leadership.min_leaders import MinLeaders, MinLeadersRepair
from include.planning.leadership.preferred_leaders import balance_leaders, settle_leaders
from include.planning.leadership.topic_leaders import even_leaders
from include.planning.limits.apply_limits import outside_sets, set_name
from include.planning.limits.give_back import give_back
from include.planning.limits.limit_checks import refuse_impossible, set_too_small
from include.planning.limits.set_trees import rack_tree
from include.planning.model.arrays import ClusterArrays, broker_sums, in_sync_of, is_new
from include.planning.model.layout import Layout
from include.planning.model.rack_tree import RackTree
from include.planning.model.resource_loads import capacities
from include.planning.model.scope import (
    brokers_named,
    check_idle,
    check_replication_factor,
    partitions_in_scope,
    rack_paths,
    raise_if,
)
from include.planning.model.topic_bands import topic_bands
from include.planning.placement.decrease_replication import shrink
from include.planning.placement.increase_replication import RingPlacer
from include.planning.placement.movable import free_to_move, named, with_source
from include.planning.placement.within_budget import Costs, affordable
from include.planning.rebalance.budget_cut import budget_of
from include.planning.result.lower_bounds import least_copies, placement_bound
from include.planning.result.outcome import (
    Outcome,
    complete,
    largest_first,
    left_brokers,
    new_brokers,
    new_places,
    tree_of,
)
from include.planning.result.topic_notes import missed_topics, topic_balance


def plan_drain(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The action drain: every replica in scope leaves the named brokers; nothing else moves."""
    drained = brokers_named(arrays, request)
    hosts = arrays.brokers.live & ~drained
    leaving = (arrays.rows != NONE) & drained[arrays.rows]
    scope = partitions_in_scope(arrays, request)
    partitions = np.flatnonzero(scope & leaving.any(axis=1))
    replicas = arrays.replication_factor
    if not hosts.any():
        raise_if(["No live broker is left to take the replicas of the drained ones."])
    check_idle(arrays, partitions)
    partitions, lost = with_source(arrays, partitions)
    check_replication_factor(arrays, partitions, replicas, int(hosts.sum()), "live brokers left")
    if len(partitions):
        refuse_impossible(arrays, hosts, partitions, replicas)
    tree = tree_of(arrays, hosts, request)
    leaving &= np.isin(np.arange(len(scope)), partitions)[:, None]
    paid = affordable(
        budget_of(request),
        partitions,
        partial(_least_costs, arrays, tree, partitions, replicas),
        partial(_broker_by_broker, arrays, leaving, partitions),
    )
    layout = Layout(arrays)
    bands = topic_bands(
        layout,
        tree,
        partitions=scope & ~arrays.in_flight,
        brokers=arrays.brokers.live | drained,
        capacity=capacities(arrays, hosts, request.weights) * hosts,
        tolerance=spread_tolerance(request),
        leaders_only=request.topic_spread_of is SpreadOf.LEADERS,
    )
    complete(layout, tree, paid, replicas, request.weights, bands)
    settle_leaders(layout)
    if bands is not None:
        even_leaders(layout, bands, layout.rows[:, 0] != layout.origin[:, 0], hosts, None)

    def why(p: int) -> str:
        gone, dead = (
            arrays.brokers.ids[[b for b in left_brokers(layout, p) if side[b]]].tolist()
            for side in (drained, ~drained)
        )
        are = "is" if len(gone) == 1 else "are"
        besides = f", and {brokers_text(dead)} not live" if dead else ""
        return f"{brokers_text(gone).capitalize()} {are} drained{besides}; {new_places(layout, p)}."

    return Outcome(
        layout=layout,
        tree_before=tree_of(arrays, arrays.brokers.live, request),
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, paid),
        asked_bound_bytes=_asked_bound(arrays, tree, partitions, replicas, paid),
        reason=MoveReason.DRAIN,
        why=why,
        infeasible=(
            *lost,
            *_undrained(arrays, leaving, paid),
            *(missed_topics(layout, bands, hosts, np.zeros_like(hosts)) if bands else ()),
        ),
        topics=topic_balance(layout, bands) if bands else None,
        prices=lambda: (TargetPrice(TOPIC_SPREAD, 0, 0, "free"),) if bands else (),
    )


def _broker_by_broker(
    arrays: ClusterArrays, leaving: Mask, partitions: Ints, parts: Floats
) -> Ints:
    """Order of partitions that empties one broker after the other: brokers with the smallest part
    of the budget first, and largest partitions first within each.

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
    """Notes on brokers that the budget does not suffice to empty, with the replicas that they
    keep.
    """
    stays = leaving.copy()
    stays[paid] = False
    count = np.bincount(arrays.rows[stays], minlength=len(arrays.brokers.ids))
    return tuple(
        Infeasible(
            Subject.of_broker(arrays.brokers.ids[b]),
            Obstacle.BUDGET,
            wanted=0,
            nearest=int(count[b]),
            resource=Resource.REPLICAS,
        )
        for b in np.flatnonzero(count).tolist()
    )


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
        partial(_least_costs, arrays, tree, grown, wanted),
        lambda parts: np.lexsort((arrays.size_bytes[grown], parts, in_sync_of(arrays)[grown])),
    )
    layout = Layout(arrays, width=replicas)
    uneven = shrink(layout, tree, capacity, shrunk, replicas)
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
        asked_bound_bytes=_asked_bound(arrays, tree, grown, wanted, paid),
        reason=MoveReason.REPLICATION_FACTOR,
        why=why,
        infeasible=(
            *lost,
            *thin,
            *named(arrays, uneven, Obstacle.IN_SYNC_FIRST),
            *_left_out(
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


def _next_in_turn(layout: Layout, p: int) -> str:
    ids = new_brokers(layout, p)
    return (
        f"{brokers_text(ids)} {'is' if len(ids) == 1 else 'are'} next on the rings of the rack "
        "tree, branches that are fuller than their siblings passed over"
    )


def plan_racks(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The action repair_racks: spread partitions in scope as evenly as the racks allow."""
    hosts = arrays.brokers.live
    tree = tree_of(arrays, hosts, request)
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    every, replicas = np.arange(len(arrays.rows)), arrays.replication_factor
    violations = tree.violations_of(every, arrays.rows)
    small = movable & set_too_small(arrays, hosts, replicas)
    infeasible += named(arrays, np.flatnonzero(small), Obstacle.SET_TOO_SMALL)
    partitions = np.flatnonzero(movable & ~small & (violations > 0))
    paid = affordable(
        budget_of(request),
        partitions,
        partial(_least_costs, arrays, tree, partitions, replicas),
        lambda parts: np.lexsort((parts, -violations[partitions])),
    )
    layout = Layout(arrays)
    complete(layout, tree, paid, replicas, request.weights)
    settle_leaders(layout)
    unpaid = _left_out(Subject(SubjectKind.RACK_REPAIR), len(partitions) - len(paid))
    if arrays.limits is not None:
        same = ~is_new(layout.rows[paid], arrays.rows[paid]).any(axis=1)
        unpaid += named(arrays, paid[same], Obstacle.CAPS_KEEP_UNEVEN)
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, paid),
        asked_bound_bytes=_asked_bound(arrays, tree, partitions, replicas, paid),
        reason=MoveReason.RACK,
        why=lambda p: _why_repaired(arrays, layout, p),
        infeasible=(*infeasible, *unpaid),
    )


def _why_repaired(arrays: ClusterArrays, layout: Layout, p: int) -> str:
    outside = arrays.rows[p][outside_sets(arrays, arrays.rows)[p]] if arrays.limits else []
    if len(outside):
        ids = brokers_text(arrays.brokers.ids[outside].tolist())
        name = set_name(arrays, p)
        return f"{ids.capitalize()} may not hold it by {name}; {new_places(layout, p)}."
    return f"Its replicas were not spread evenly over racks; {new_places(layout, p)}."


def _asked_bound(
    arrays: ClusterArrays, tree: RackTree, partitions: Ints, replicas: Ints, paid: Ints
) -> int | None:
    """Lower bound for all of the partitions, if the budget suffices for some only."""
    if len(paid) == len(partitions):
        return None
    return int(_least_costs(arrays, tree, partitions, replicas)[0].sum())


def _left_out(target: Subject, unpaid: int) -> tuple[Infeasible, ...]:
    """Note on how many of these partitions the budget leaves unchanged."""
    return (Infeasible(target, Obstacle.BUDGET, wanted=0, nearest=unpaid),) if unpaid else ()


def _least_costs(arrays: ClusterArrays, tree: RackTree, partitions: Ints, replicas: Ints) -> Costs:
    """Lower bound of the cost of each partition: to get its number of replicas (P,), evenly
    spread.
    """
    least = (
        least_copies(tree.of(p), arrays.rows[p], int(replicas[p])) for p in partitions.tolist()
    )
    copies = np.fromiter(least, np.int64, len(partitions))
    return np.stack([copies * arrays.size_bytes[partitions], copies]).astype(float)


def plan_leaders(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The action balance_leaders: even out preferred leaders in scope, by replica order alone."""
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    layout, tree = Layout(arrays), tree_of(arrays, arrays.brokers.live, request)
    balance_leaders(layout, movable)
    minimums = MinLeaders.of(arrays, request, arrays.brokers.live)
    evened = layout.rows[:, 0].copy()
    if minimums is not None:
        MinLeadersRepair(layout, minimums, movable).run()
    keep_led_caps(layout, movable, lower=True)
    give_back(layout)
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


def plan_requested(
    snapshot: Snapshot, arrays: ClusterArrays, request: ReassignmentRequest
) -> Outcome:
    """The action reassign: the operator's own file."""
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
