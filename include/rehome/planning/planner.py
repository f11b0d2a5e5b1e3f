"""`make_plan`: a request and a snapshot become a plan. Pure and deterministic.

docs/planning.md explains how replicas are placed, and why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action, Trait
from rehome.domain.plan.figures import TargetPrice
from rehome.domain.plan.move_table import MoveCounts, MoveTable
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import seal
from rehome.domain.plan.summary import BrokerLoad, PlanSummary
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.pace import Pace
from rehome.errors import InvalidRequestError
from rehome.planning.actions.balance_leaders import plan_leaders
from rehome.planning.actions.demote import plan_demotion
from rehome.planning.actions.drain import plan_drain
from rehome.planning.actions.elect_preferred import plan_elections
from rehome.planning.actions.evacuate_log_dirs import plan_evacuation
from rehome.planning.actions.fix_offline_replicas import plan_offline_replicas
from rehome.planning.actions.move_log_dirs import plan_log_dirs, within_brokers
from rehome.planning.actions.reassign import plan_requested
from rehome.planning.actions.repair_racks import plan_racks
from rehome.planning.actions.replace import plan_replacement
from rehome.planning.actions.set_replication_factor import plan_replication_factor
from rehome.planning.leadership.leader_caps import keep_led_caps
from rehome.planning.limits.destinations import with_limits
from rehome.planning.limits.fewer_racks import refuse_fewer_racks
from rehome.planning.limits.limit_checks import limit_notes, refuse_broken
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.resource_loads import known_resources
from rehome.planning.model.scope import (
    partitions_in_scope,
    raise_if,
    shorten,
    without_excluded,
)
from rehome.planning.options import PlanOptions
from rehome.planning.rebalance.rebalance import plan_expansion, plan_rebalance
from rehome.planning.result.log_dir_choice import choose_log_dirs, tighten
from rehome.planning.result.lower_bounds import broker_loads, predicted_seconds
from rehome.planning.result.outcome import Outcome
from rehome.planning.result.plan_moves import planned_moves
from rehome.planning.result.summary_figures import (
    bytes_across_racks,
    links,
    makespan_bound_s,
    planned_by,
    ratio_to_bound,
    resource_balances,
    what_is_weakened,
)

PLANNERS = {
    Action.REBALANCE: plan_rebalance,
    Action.EXPAND: plan_expansion,
    Action.DRAIN: plan_drain,
    Action.REPLACE: plan_replacement,
    Action.SET_REPLICATION_FACTOR: plan_replication_factor,
    Action.REPAIR_RACKS: plan_racks,
    Action.FIX_OFFLINE_REPLICAS: plan_offline_replicas,
    Action.BALANCE_LEADERS: plan_leaders,
    Action.DEMOTE: plan_demotion,
    Action.ELECT_PREFERRED: plan_elections,
}

PLANS_PER_REQUEST = 4
"""The most attempts to find a plan whose copies can be packed into the log dirs. The search packs
them as well, so the first attempt nearly always succeeds."""


def make_plan(
    snapshot: Snapshot,
    request: ReassignmentRequest,
    options: PlanOptions,
) -> Plan:
    """Plan a request on a snapshot. Same snapshot, request and seed: same moves, same hash.

    :raises InvalidRequestError: when the cluster contradicts the request; lists the problems.
    """
    free = options.min_free_disk_fraction
    arrays = cluster_of(snapshot, request, min_free_disk_fraction=free)
    outcome, moves = _that_fits(snapshot, arrays, request, free)
    if request.action is not Action.REASSIGN:  # there a person has chosen each replica
        trees = outcome.tree_before, outcome.tree_after
        refuse_fewer_racks(outcome.layout, *trees, arrays, request)
    pace = options.pace(request.max_moves_per_broker)
    return plan_of(
        snapshot,
        outcome,
        moves,
        options,
        action=request.action,
        pace=pace,
        prices=outcome.prices() if request.dry_run or request.approval else (),
    )


def target_prices_of(
    snapshot: Snapshot, request: ReassignmentRequest, min_free_disk_fraction: float
) -> tuple[TargetPrice, ...]:
    """What each target of a request costs, planned again: for a plan that was made without.

    :raises InvalidRequestError: when the cluster contradicts the request.
    """
    free = min_free_disk_fraction
    arrays = cluster_of(snapshot, request, min_free_disk_fraction=free)
    return _that_fits(snapshot, arrays, request, free)[0].prices()


def guard(plan: Plan, request: ReassignmentRequest) -> Plan:
    """The plan for which the controller is to refuse a changed replication factor, unless that was
    asked for.
    """
    unasked = request.action is not Action.SET_REPLICATION_FACTOR
    if unasked and plan.allow_replication_factor_change:
        return seal(replace(plan, allow_replication_factor_change=False))
    return plan


def cluster_of(
    snapshot: Snapshot, request: ReassignmentRequest, *, min_free_disk_fraction: float
) -> ClusterArrays:
    """The arrays of a snapshot, with the limits of the request.

    :raises InvalidRequestError: destinations that the request cannot have.
    """
    arrays = ClusterArrays.from_snapshot(
        snapshot, min_free_disk_fraction=min_free_disk_fraction, caps=request.caps
    )
    return with_limits(arrays, request)


def _predicted_s(outcome: Outcome, pace: Pace, log_dir_bytes: int) -> float:
    relocated = np.array([*outcome.log_dirs], np.int64)
    return predicted_seconds(outcome.layout, outcome.changes(), relocated, pace, log_dir_bytes)


def plan_of(
    snapshot: Snapshot,
    outcome: Outcome,
    moves: MoveTable,
    options: PlanOptions,
    *,
    action: Action,
    pace: Pace | None,
    prices: tuple[TargetPrice, ...] = (),
) -> Plan:
    """Turn an outcome into a plan: moves with their causes, and the summary."""
    within = within_brokers(outcome)
    before, after = _uneven(outcome)
    between = max(within.size_bytes.values(), default=0)
    return assemble(
        snapshot,
        moves,
        tuple(
            replace(load, log_dir_bytes=within.size_bytes.get(load.broker, 0))
            for load in broker_loads(outcome.layout)
        ),
        options,
        action=action,
        predicted_s=_predicted_s(outcome, pace, between) if pace else None,
        lower_bound_bytes=outcome.lower_bound_bytes,
        rack_violations_before=before,
        rack_violations_after=after,
        infeasible=outcome.infeasible,
        bytes_across_racks=bytes_across_racks(outcome.layout, outcome.tree_after),
        planned_by=planned_by(outcome.bands, known_resources(outcome.layout.arrays), action),
        resources=resource_balances(outcome),
        prices=prices,
        curve=outcome.curve(),
        links=links(outcome.layout, outcome.tree_after),
        log_dir_moves=within.replicas,
        log_dir_bytes=within.total_bytes,
        log_dir_bound_bytes=within.bound_bytes,
        topics=outcome.topics,
        min_leaders=outcome.min_leaders,
        asked_bound_bytes=outcome.asked_bound_bytes,
        search_cut=outcome.search_cut,
        lower_bound_moves=outcome.lower_bound_moves,
    )


def _uneven(outcome: Outcome) -> tuple[int, int]:
    """Partitions that are not evenly spread, before and after."""
    layout, trees = outcome.layout, (outcome.tree_before, outcome.tree_after)
    every = np.arange(len(layout.rows))
    before = trees[0].violations_of(every, layout.origin) > 0
    changed = every if trees[1] is not trees[0] else layout.changed_partitions()
    after = before.copy()
    after[changed] = trees[1].violations_of(changed, layout.rows[changed]) > 0
    return int(before.sum()), int(after.sum())


def assemble(
    snapshot: Snapshot,
    moves: MoveTable,
    brokers: tuple[BrokerLoad, ...],
    options: PlanOptions,
    *,
    action: Action,
    lower_bound_bytes: int,
    log_dir_bytes: int = 0,
    log_dir_bound_bytes: int = 0,
    asked_bound_bytes: int | None = None,
    lower_bound_moves: int | None = None,
    **figures: Any,
) -> Plan:
    """Build a plan from finished moves.

    :param brokers: loads before and after the moves.
    :param figures: fields of PlanSummary that follow from neither moves nor brokers.
    """
    counts = MoveCounts.of(moves)
    summary = PlanSummary(
        plan_id=options.plan_id,
        plan_hash="",
        cluster_id=snapshot.cluster_id,
        action=action.value,
        snapshot=snapshot.name,
        partitions=len(moves),
        replica_moves=counts.replica_moves,
        leader_changes=counts.leader_changes,
        elections=counts.elections,
        bytes_to_move=counts.bytes_to_move,
        lower_bound_bytes=lower_bound_bytes,
        rate_bytes_per_s=options.rate_bytes_per_s,
        min_free_disk_fraction=options.min_free_disk_fraction,
        brokers=brokers,
        ratio_to_bound=ratio_to_bound(
            counts.bytes_to_move + log_dir_bytes,
            lower_bound_bytes + log_dir_bound_bytes
            if asked_bound_bytes is None
            else asked_bound_bytes,
        ),
        lower_bound_moves=lower_bound_moves,
        moves_over_bound=(
            round(counts.replica_moves / lower_bound_moves, 4) if lower_bound_moves else None
        ),
        makespan_bound_s=makespan_bound_s(brokers, options.rate_bytes_per_s),
        log_dir_bytes=log_dir_bytes,
        log_dir_bound_bytes=log_dir_bound_bytes,
        asked_bound_bytes=asked_bound_bytes,
        weakened=what_is_weakened(snapshot, moves),
        **figures,
    )
    return seal(
        Plan(
            plan_id=options.plan_id,
            cluster_id=snapshot.cluster_id,
            action=action.value,
            moves=moves,
            summary=summary,
            allow_replication_factor_change=counts.resized > 0,
        )
    )


def _that_fits(
    snapshot: Snapshot,
    arrays: ClusterArrays,
    request: ReassignmentRequest,
    min_free_disk_fraction: float,
) -> tuple[Outcome, MoveTable]:
    """Plan until all copies fit into the log dirs. Returns the outcome and its moves.

    :raises InvalidRequestError: also if some copies fit into no log dir.
    """
    if request.action is Action.MOVE_LOG_DIRS:
        outcome = _plan(snapshot, arrays, request, min_free_disk_fraction)
        outcome = within_limits(outcome, request)
        return outcome, planned_moves(outcome)
    asked_for, planned_on = request.action is Action.REASSIGN, arrays
    for _ in range(PLANS_PER_REQUEST):
        outcome = _plan(snapshot, planned_on, request, min_free_disk_fraction)
        outcome = within_limits(outcome, request)
        planned = planned_moves(outcome)
        moves, misfits = choose_log_dirs(planned, arrays.brokers, name=not asked_for)
        if not misfits or asked_for:
            break
        planned_on = replace(planned_on, brokers=tighten(planned_on.brokers, misfits))
    raise_if(shorten([misfit.problem for misfit in misfits]))
    return outcome, moves


def within_limits(outcome: Outcome, request: ReassignmentRequest) -> Outcome:
    """The outcome after leaders were brought within caps, with notes on limits that are still
    exceeded.

    :raises InvalidRequestError: the plan breaks a limit that was kept before.
    """
    layout = outcome.layout
    if layout.arrays.limits is None:
        return outcome
    if not request.has(Trait.KEEPS_ORDER):
        nothing = np.zeros(len(layout.rows), bool)
        keep_led_caps(layout, nothing, lower=False)
    refuse_broken(layout.arrays, layout.origin, layout.rows)
    repaired = None
    if request.has(Trait.REPAIRS_SETS):
        repaired = partitions_in_scope(layout.arrays, request)
    notes = limit_notes(layout.arrays, layout.rows, repaired)
    return replace(outcome, infeasible=(*outcome.infeasible, *notes))


def _plan(
    snapshot: Snapshot,
    arrays: ClusterArrays,
    request: ReassignmentRequest,
    min_free_disk_fraction: float,
) -> Outcome:
    if request.action is Action.REASSIGN:
        return plan_requested(snapshot, arrays, request)
    check_hidden(snapshot, request)
    if request.action is Action.MOVE_LOG_DIRS:
        return plan_log_dirs(
            snapshot, arrays, request, min_free_disk_fraction=min_free_disk_fraction
        )
    if request.action is Action.EVACUATE_LOG_DIRS:
        return plan_evacuation(
            snapshot,
            without_excluded(arrays, request),
            request,
            min_free_disk_fraction=min_free_disk_fraction,
        )
    if request.action is Action.ROLLBACK:
        raise InvalidRequestError(["A rollback is planned from the moves of the stored plan."])
    return PLANNERS[request.action](without_excluded(arrays, request), request)


def check_hidden(snapshot: Snapshot, request: ReassignmentRequest) -> None:
    """Refuse an action that could not empty its brokers, because topics are hidden.

    :raises InvalidRequestError: names the topics that are hidden.
    """
    if request.has(Trait.EMPTIES) and snapshot.hidden_topics:
        names = ", ".join(snapshot.hidden_topics)
        problem = (
            f"Topics {names} are hidden from this principal: their replicas cannot be drained."
        )
        raise InvalidRequestError([problem])
