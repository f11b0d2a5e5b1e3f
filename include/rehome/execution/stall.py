"""When a plan that does not move counts as stalled."""

from __future__ import annotations

from datetime import datetime, timedelta

from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import silence_s
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import Policy


def patience_s(view: LedgerView, limit_s: float, *, in_flight: bool) -> float:
    """How long nothing may move before that counts as a stall.

    :param limit_s: what is set; where copies are in flight, no less than what the throttle's own
        window explains.
    """
    least = view.least_rate_bytes_per_s
    if not in_flight or least is None:
        return limit_s
    return max(limit_s, silence_s(least))


def held_up(plan: Plan, observation: Observation, policy: Policy, *, admitted: bool) -> bool:
    """Whether a plan only waits for another client's reassignment to end: that is no stall.

    :param admitted: whether something of its own is.
    """
    if admitted or policy.additional:
        return False
    return any(partition not in plan.by_partition for partition in observation.ongoing)


def overdue(view: LedgerView, now: datetime, limit_s: float) -> bool:
    """Whether a cluster that does not answer now is to be given up: as a stall would be."""
    return view.still_since is None or now - view.still_since > timedelta(seconds=limit_s)
