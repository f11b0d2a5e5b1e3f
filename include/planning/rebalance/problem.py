"""The problem that a rebalance is to solve: who gives and takes, the bands, and the tolerances."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from include.domain.array_types import NONE, Floats, Mask, Rows
from include.domain.request.param_types import TOPIC_SPREAD
from include.domain.request.request import ReassignmentRequest, SpreadOf, spread_tolerance
from include.domain.resources import DEFAULT_TOLERANCES, LOOSE, Resource, placed
from include.errors import InvalidRequestError
from include.planning.limits.limited import outside_sets
from include.planning.limits.set_trees import fair_capacity
from include.planning.model.arrays import ClusterArrays, broker_sums
from include.planning.model.layout import Layout
from include.planning.model.load_bands import placed_targets
from include.planning.model.rack_tree import RackTree
from include.planning.model.resource_loads import known, placed_weights
from include.planning.model.topic_bands import topic_bands
from include.planning.placement.replica_sets import Placer
from include.planning.search.broker_shed import REPLICAS
from include.planning.search.parts import parts_of
from include.planning.search.state import Problem


def problem_of(
    layout: Layout,
    tree: RackTree,
    request: ReassignmentRequest,
    *,
    partitions: Mask,
    brokers: Mask,
    capacity: Floats,
    fair: Floats | None = None,
    whole: bool = True,
) -> Problem:
    """The problem a rebalance solves.

    :param partitions: (P,) that may move.
    :param brokers: (B,) that give and take replicas; those the tree does not let host end empty.
    :param capacity: (B,) relative size of the brokers, or (K, B) per resource.
    :param fair: (K, B) what shares of resources go by where broker sets are in the way; None = the
        capacity.
    :param whole: whether these are all of the cluster's partitions, so that topics can be spread.
    """
    arrays = layout.arrays
    resources = placed(request.tolerances)
    weights = placed_weights(arrays, resources)
    tolerances = tolerances_of(request, arrays)
    shape, by = (len(resources), len(tree.hosts)), capacity if fair is None else fair
    targets = placed_targets(
        layout,
        tree,
        weights=weights,
        partitions=partitions,
        brokers=brokers,
        capacity=np.broadcast_to(by[: len(resources)] if by.ndim > 1 else by, shape) * tree.hosts,
        tolerances=tuple(tolerances[resource] for resource in resources),
        one_sided=request.one_sided,
    )
    return Problem(
        layout=layout,
        tree=tree,
        targets=targets,
        weights=weights,
        partitions=partitions,
        gives=brokers,
        takes=brokers & tree.hosts & arrays.brokers.takes,
        leaving=brokers & ~tree.hosts,
        overhead_bytes=float(request.move_overhead_bytes),
        parts=parts_of(request.effort),
        spread=topic_bands(
            layout,
            tree,
            partitions=partitions,
            brokers=brokers,
            capacity=(capacity[REPLICAS] if capacity.ndim > 1 else capacity) * tree.hosts,
            tolerance=spread_tolerance(request) if whole else LOOSE,
            one_sided=request.one_sided,
            leaders_only=request.topic_spread_of is SpreadOf.LEADERS,
        ),
    )


def only_into(problem: Problem, named: Mask) -> Problem:
    """The same with the named brokers as the only receivers: the others may end anywhere
    between nothing and what they hold.
    """
    targets = problem.targets
    load = np.stack(
        [broker_sums(problem.layout.rows, weight, len(named)) for weight in problem.weights]
    )
    low = np.where(named, targets.low, 0.0)
    high = np.where(named, targets.high, np.maximum(targets.high, load))
    targets = replace(targets, low=low, high=high)
    spread = problem.spread
    if spread is not None:
        spread = spread.only_into(named, problem.layout.rows)
    return replace(problem, targets=targets, takes=problem.takes & named, spread=spread)


def placed_capacity(
    arrays: ClusterArrays, tree: RackTree, capacity: Floats, request: ReassignmentRequest
) -> Floats | None:
    """(K, B) what shares of placed resources go by where there are broker sets; else None."""
    if len(tree.trees) == 1:
        return None
    factor, weights = arrays.replication_factor, placed_weights(arrays, placed(request.tolerances))
    return np.stack([fair_capacity(arrays, tree, capacity, w * factor) for w in weights])


def tolerances_of(request: ReassignmentRequest, arrays: ClusterArrays) -> dict[Resource, float]:
    """The tolerance of each resource; infinite where it is free or its load is not known."""
    return {
        resource: value if known(arrays, resource) else LOOSE
        for resource, value in asked_tolerances(request).items()
    }


def asked_tolerances(request: ReassignmentRequest) -> dict[Resource, float]:
    """The tolerance of each resource; infinite where it is free."""
    tolerances = {**DEFAULT_TOLERANCES, Resource.BYTES: request.tolerance}
    for name, value in request.tolerances.items():
        if name != TOPIC_SPREAD:
            tolerances[Resource(name)] = LOOSE if value is None else value
    return tolerances


def inside_sets(problem: Problem, capacity: Floats) -> tuple[Problem, Rows]:
    """The problem once replicas are in their broker sets, and (P, R) the rows by then. What no
    broker of its set has room for stays as it is.
    """
    layout = problem.layout
    start = layout.rows.copy() if move_into_sets(problem, capacity) else layout.home
    stays = outside_sets(layout.arrays, layout.rows).any(axis=1)
    return replace(problem, partitions=problem.partitions & ~stays), start


def move_into_sets(problem: Problem, capacity: Floats) -> bool:
    """Bring replicas that may move, and lie outside of their broker set, onto its brokers, the
    largest partitions first; whether there were any. What its brokers have no room for stays, and
    is named in the end. An expansion brings none.
    """
    layout, hosts = problem.layout, problem.tree.hosts & problem.layout.arrays.brokers.takes
    outside = outside_sets(layout.arrays, layout.rows).any(axis=1) & problem.partitions
    if not outside.any() or (problem.takes != (problem.gives & hosts)).any():
        return False
    partitions = np.flatnonzero(outside)
    placer, everyone = (
        Placer(layout, problem.tree, capacity, takes=problem.takes),
        problem.gives.all(),
    )
    for partition in partitions[np.argsort(-layout.size[partitions], kind="stable")].tolist():
        before = layout.rows[partition].copy()
        with suppress(InvalidRequestError):
            placer.complete(partition, int((before != NONE).sum()))
        after = layout.rows[partition].tolist()
        left = [broker for broker in before.tolist() if broker not in after]
        if not everyone and not problem.gives[left].all():
            for slot, broker in enumerate(before.tolist()):
                layout.move(partition, slot, broker)
    return True
