"""Going on with a plan that has paused: what is left of it, and whether that still fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from rehome.domain.actions import Action
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest, request_to_params
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.lease import is_orphaned
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.refusals import ContinueRefusal, NotContinued
from rehome.execution.control.refused import NotContinuedError
from rehome.execution.observation.drift import refuse_drift
from rehome.ledger.base.records import PlanRecord, ThrottleState
from rehome.ledger.store import Ledger

_BOUNDS = (
    "throttle",
    "throttle_by_broker",
    "throttle_min",
    "throttle_max",
    "unthrottled",
    "window_end",
    "on_window_end",
    "max_moves_per_broker",
    "additional",
)
_OF_WINDOWS = ("window_end", "on_window_end")


def bounds_of(request: ReassignmentRequest) -> dict[str, Any]:
    """How a request wants moves to be carried out, as parameters; not what is to move."""
    params = request_to_params(request)
    return {name: params[name] for name in _BOUNDS}


def window_of(request: ReassignmentRequest) -> dict[str, Any]:
    """The window that moves are carried out in, as parameters."""
    params = request_to_params(request)
    return {name: params[name] for name in _OF_WINDOWS}


def same_bounds(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same of parameters as the ledger keeps them."""
    return {name: params[name] for name in _BOUNDS if name in params}


def in_time(params: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The parameters for another run, without the end of a window that has closed.

    A preset has filled them in already: it must not do so again.
    """
    ends = params.get("window_end")
    over = ends is not None and datetime.fromisoformat(ends) <= now
    left_out = {"preset", "window_end"} if over else {"preset"}
    return {name: value for name, value in params.items() if name not in left_out}


def not_started(plan: Plan, view: LedgerView) -> Plan:
    """The plan less the moves that have ended or are in flight."""
    left = (move for move in plan.moves if view.moves.get(move.partition) is MoveState.PENDING)
    return replace(plan, moves=tuple(left))


def moving_or_done(plan: Plan, view: LedgerView) -> tuple[Move, ...]:
    """The plan's moves that are in flight, or done."""
    on_target = (MoveState.ADMITTED, MoveState.DONE)
    states = ((move, view.moves.get(move.partition, MoveState.DONE)) for move in plan.moves)
    return tuple(move for move, state in states if state in on_target)


def waits_for_window(record: PlanRecord, ledger: Ledger) -> bool:
    """Whether the next window resumes the plan. A pause that a person has asked for is ended
    by a person only.
    """
    if record.state is PlanState.PAUSED:
        return not record.pause_requested
    return is_orphaned(record, ledger)


def only_planned(record: PlanRecord) -> bool:
    """Whether a dry run has made the plan, which no run has taken up since."""
    return record.state is PlanState.PLANNED and bool(record.request.get("dry_run"))


def can_be_run(record: PlanRecord) -> bool:
    """Whether a run may be started that carries the plan out; one that takes another plan back is
    made anew: its parameter ``plan_id`` names that other plan.
    """
    return only_planned(record) and record.action != Action.ROLLBACK.value


def check_continuable(
    plan: Plan, ledger: Ledger, cluster: OwnCluster, driver: str, dag_id: str = ""
) -> None:
    """See that a run may resume this plan, and that what is left of it still fits.

    It may with a paused plan, with one whose own run is dead, and with what a dry run has planned.

    :param dag_id: the run's DAG.
    :raises WrongClusterError: the connection leads to another cluster than the plan's.
    :raises DriftError: partitions that are left to move have changed.
    :raises NotContinuedError: naming any other cause. Nothing was changed.
    """
    cluster.describe_cluster()
    record = ledger.plan(plan.plan_id)
    if record.driver == driver and not record.state.ended:
        return
    if not record.may_be_begun_by(dag_id):
        _refuse_driven(record, ledger)
    refuse_drift(not_started(plan, ledger.view_of_open(plan.plan_id)), cluster)


def _refuse_driven(record: PlanRecord, ledger: Ledger) -> None:
    holder = ledger.holder(record.cluster_id)
    ends_at = None if holder is None else holder.expires_at
    refusal = partial(ContinueRefusal, record, lease_ends_at=ends_at)
    if record.state is PlanState.RUNNING and not is_orphaned(record, ledger):
        raise NotContinuedError(refusal(NotContinued.DRIVEN))
    if record.state is PlanState.PLANNED:
        raise NotContinuedError(refusal(NotContinued.TAKEN_UP))
    if not record.state.active:
        raise NotContinuedError(refusal(NotContinued.NOT_OPEN))
    entries = ledger.throttles(record.plan_id, open_only=True)
    if holder is not None and any(entry.state is not ThrottleState.OWED for entry in entries):
        raise NotContinuedError(refusal(NotContinued.THROTTLES_SET))
