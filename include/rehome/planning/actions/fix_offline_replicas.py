"""The action fix_offline_replicas: move replicas off dead brokers and failed log dirs, most
endangered partitions first.
"""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.domain.plan.causes.move_cause import CauseCode
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.leadership.preferred_leaders import settle_leaders
from rehome.planning.model.arrays import ClusterArrays, in_sync_of
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import brokers_named, partitions_in_scope
from rehome.planning.placement.movable import notes_of, with_source
from rehome.planning.placement.replica_sets import Placer
from rehome.planning.placement.within_budget import Costs, affordable
from rehome.planning.rebalance.budget_cut import budget_of
from rehome.planning.result.outcome import Outcome, of_left_brokers, tree_of


def plan_offline_replicas(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Move offline replicas of partitions in scope to other brokers; nothing else is copied.

    If the request names brokers, only partitions with an offline replica on one of them change. All
    offline replicas of such a partition move, because the target list must not contain a dead
    broker. Partitions without a leader, or without a possible broker, are reported as infeasible.
    """
    offline = _offline(arrays)
    meant = offline & brokers_named(arrays, request)[arrays.rows] if request.brokers else offline
    partitions = np.flatnonzero(partitions_in_scope(arrays, request) & meant.any(axis=1))
    busy = arrays.in_flight[partitions]
    sound, lost = with_source(arrays, partitions[~busy])
    urgency = _most_endangered_first(arrays, sound)
    copies = offline[sound].sum(axis=1)
    paid = affordable(
        budget_of(request),
        sound[urgency],
        lambda: _costs(arrays, sound[urgency], copies[urgency]),
        lambda parts: np.arange(len(parts)),
    )
    layout, tree = Layout(arrays), tree_of(arrays, arrays.brokers.live, request)
    placer = Placer(layout, tree, capacities(arrays, tree.hosts, request.weights))
    placed = [
        placer.replace(p, set(arrays.rows[p][offline[p]].tolist()))
        for p in sound[urgency][np.isin(sound[urgency], paid)].tolist()
    ]
    unplaced = sound[urgency][np.isin(sound[urgency], paid)][~np.array(placed, bool)]
    settle_leaders(layout)
    unpaid = len(sound) - len(paid)
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=int(layout.incoming.sum()),
        asked_bound_bytes=int(_costs(arrays, sound, copies)[0].sum()) if unpaid else None,
        reason=MoveReason.OFFLINE,
        causes=of_left_brokers(
            layout,
            (CauseCode.NOT_LIVE, CauseCode.LOG_DIR_FAILED),
            arrays.brokers.live.astype(np.int64),
        ),
        infeasible=(
            *notes_of(arrays, partitions[busy], Obstacle.IN_FLIGHT),
            *lost,
            *notes_of(arrays, np.sort(unplaced), Obstacle.NO_BROKER),
            *((_unpaid_note(unpaid),) if unpaid else ()),
        ),
    )


def _unpaid_note(partitions: int) -> Infeasible:
    """Note: the budget does not suffice for this many partitions."""
    return Infeasible(Subject(SubjectKind.OFFLINE_REPLICAS), Obstacle.BUDGET, 0, partitions)


def _offline(arrays: ClusterArrays) -> Mask:
    if arrays.offline is not None:
        return arrays.offline
    dead: Mask = (arrays.rows != NONE) & ~arrays.brokers.live[arrays.rows]
    return dead


def _most_endangered_first(arrays: ClusterArrays, partitions: Ints) -> Ints:
    """Order of partitions: fewest replicas in sync first; ties: largest first."""
    order: Ints = np.lexsort((-arrays.size_bytes[partitions], in_sync_of(arrays)[partitions]))
    return order


def _costs(arrays: ClusterArrays, partitions: Ints, copies: Ints) -> Costs:
    costs: Floats = np.stack([copies * arrays.size_bytes[partitions], copies]).astype(float)
    return costs
