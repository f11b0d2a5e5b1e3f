"""The action drain: every replica in scope leaves the named brokers."""

from __future__ import annotations

from functools import partial

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.domain.plan.causes.move_cause import CauseCode
from rehome.domain.plan.figures import TargetPrice
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.param_types import TOPIC_SPREAD
from rehome.domain.request.request import ReassignmentRequest, SpreadOf, spread_tolerance
from rehome.domain.resources import Resource
from rehome.planning.actions.placement_costs import asked_bound, least_costs
from rehome.planning.leadership.leader_caps import keep_led_caps
from rehome.planning.leadership.preferred_leaders import settle_leaders
from rehome.planning.leadership.topic_leaders import even_leaders
from rehome.planning.limits.destinations import refuse_apart
from rehome.planning.limits.limit_checks import refuse_impossible
from rehome.planning.model.arrays import ClusterArrays, broker_sums
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import (
    brokers_named,
    check_idle,
    check_replication_factor,
    partitions_in_scope,
    raise_if,
)
from rehome.planning.model.topic_bands import topic_bands
from rehome.planning.placement.movable import with_source
from rehome.planning.placement.within_budget import affordable
from rehome.planning.rebalance.budget_cut import budget_of
from rehome.planning.result.lower_bounds import placement_bound
from rehome.planning.result.outcome import Outcome, complete, of_left_brokers, tree_of
from rehome.planning.result.topic_notes import missed_topics, topic_balance

_CAUSES = (CauseCode.NOT_LIVE, CauseCode.RACKS_OF_MOVED, CauseCode.DRAINED)
"""Why replicas leave dead brokers, live ones, and those that are drained."""


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
    refuse_apart(arrays, request, hosts, partitions)
    if len(partitions):
        refuse_impossible(arrays, hosts, partitions, replicas)
    tree = tree_of(arrays, hosts, request)
    leaving &= np.isin(np.arange(len(scope)), partitions)[:, None]
    paid = affordable(
        budget_of(request),
        partitions,
        partial(least_costs, arrays, tree, partitions, replicas),
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
    keep_led_caps(layout, np.zeros_like(scope), lower=False)

    return Outcome(
        layout=layout,
        tree_before=tree_of(arrays, arrays.brokers.live, request),
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, paid),
        asked_bound_bytes=asked_bound(arrays, tree, partitions, replicas, paid),
        reason=MoveReason.DRAIN,
        causes=of_left_brokers(layout, _CAUSES, np.where(drained, 2, arrays.brokers.live)),
        infeasible=(
            *lost,
            *_undrained_notes(arrays, leaving, paid),
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
    broker_parts = broker_sums(np.where(leaving, arrays.rows, NONE), part, brokers)
    turn = np.empty(brokers + 1, np.int64)
    turn[np.argsort(broker_parts, kind="stable")] = np.arange(brokers)
    turn[brokers] = brokers
    rows = np.where(leaving[partitions], arrays.rows[partitions], brokers)
    return np.lexsort((-arrays.size_bytes[partitions], turn[rows].min(axis=1)))


def _undrained_notes(arrays: ClusterArrays, leaving: Mask, paid: Ints) -> tuple[Infeasible, ...]:
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
