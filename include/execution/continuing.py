"""Going on with a plan that has paused: what is left of it, and whether that still fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from include.cluster.port import ClusterPort
from include.errors import PlanConflictError
from include.execution.drift import refuse_drift
from include.execution.model import LedgerView, PlanState
from include.ledger.records import PlanRecord, ThrottleState
from include.ledger.store import Ledger
from include.planning.plan import Plan
from include.planning.request import ReassignmentRequest, request_to_params

_BOUNDS = ("throttle", "window_end", "on_window_end", "max_moves_per_broker", "additional")


def bounds_of(request: ReassignmentRequest) -> dict[str, Any]:
    """How a request wants moves to be carried out, as parameters; not what is to move."""
    params = request_to_params(request)
    return {name: params[name] for name in _BOUNDS}


def same_bounds(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same of parameters as the ledger keeps them."""
    return {name: params[name] for name in _BOUNDS if name in params}


def unfinished(plan: Plan, view: LedgerView) -> Plan:
    """The plan less the moves that have ended."""
    left = tuple(move for move in plan.moves if not view.moves[move.partition].ended)
    return replace(plan, moves=left)


def waits_for_window(record: PlanRecord) -> bool:
    """Whether the next window goes on with the plan. Nobody but a person ends a person's pause."""
    return record.state is PlanState.PAUSED and not record.pause_requested


def check_continuable(plan: Plan, ledger: Ledger, cluster: ClusterPort, run_id: str) -> None:
    """See that a run may go on with this plan, and that what is left of it still fits.

    :raises DriftError: partitions that are left to move have changed.
    :raises PlanConflictError: naming any other cause. Nothing was changed.
    """
    record = ledger.plan(plan.plan_id)
    cluster_id = cluster.describe_cluster().cluster_id
    if record.cluster_id != cluster_id:
        raise PlanConflictError(
            f"Plan {plan.plan_id} is for cluster {record.cluster_id}, "
            f"but the connection leads to {cluster_id}",
            next_step="Give the connection of the plan's cluster.",
        )
    if record.run_id == run_id and record.state.active:
        return
    if record.state is not PlanState.PAUSED:
        raise PlanConflictError(
            f"Plan {plan.plan_id} cannot be continued: it is {record.state} ({record.cause})",
            next_step="Only a paused plan can be continued. Trigger a new run.",
        )
    held = ledger.throttles(plan.plan_id, open_only=True)
    if any(entry.state is not ThrottleState.OWED for entry in held):
        raise PlanConflictError(
            f"Run {record.run_id} has paused plan {plan.plan_id}, "
            "and has not taken its throttles back yet",
            next_step="Trigger again when that run has ended.",
        )
    refuse_drift(unfinished(plan, ledger.view(plan.plan_id)), cluster)
