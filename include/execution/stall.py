"""When people are alerted to a plan that does not move."""

from __future__ import annotations

from datetime import datetime, timedelta

from include.domain.plan.plan import Plan
from include.domain.run.flows import silence_s
from include.domain.run.ledger_view import LedgerView
from include.domain.run.observation import Observation
from include.domain.run.policy import Policy
from include.domain.run.states import MoveState, PlanState

STALL_ALERT = "stall alert"
"""Kind of the ledger's event for an alert given."""


def patience_s(view: LedgerView, limit_s: float, *, in_flight: bool) -> float:
    """How long nothing may move before that counts as a stall.

    :param limit_s: what is set; where copies are in flight, no less than what the throttle's own
        window explains.
    """
    if not in_flight or view.rate_bytes_per_s is None:
        return limit_s
    return max(limit_s, silence_s(view.rate_bytes_per_s))


def held_up(plan: Plan, seen: Observation, policy: Policy, *, admitted: bool) -> bool:
    """Whether a plan only waits for another client's reassignment to end: that is no stall.

    :param admitted: whether something of its own is.
    """
    if admitted or policy.additional:
        return False
    return any(partition not in plan.by_partition for partition in seen.ongoing)


def overdue(view: LedgerView, now: datetime, limit_s: float) -> bool:
    """Whether a cluster that does not answer now is to be given up: as a stall would be."""
    return view.still_since is None or now - view.still_since > timedelta(seconds=limit_s)


def stall_alert_due(
    view: LedgerView, alerted_at: datetime | None, now: datetime, policy: Policy
) -> bool:
    """Whether nothing has moved for ``stall_alert_s`` and no alert was sent for this stall yet.

    :param alerted_at: when the last alert was given, None = never.
    """
    if view.state is not PlanState.RUNNING or view.last_progress_at is None:
        return False
    in_flight = MoveState.ADMITTED in view.moves.values()
    patience = patience_s(view, policy.stall_alert_s, in_flight=in_flight)
    if now - view.last_progress_at < timedelta(seconds=patience):
        return False
    return alerted_at is None or alerted_at < view.last_progress_at
