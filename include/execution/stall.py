"""When a plan that does not move is worth waking somebody for."""

from __future__ import annotations

from datetime import datetime, timedelta

from include.execution.model import LedgerView, PlanState, Policy

STALL_ALERT = "stall alert"
"""Kind of the ledger's event for an alert given."""


def stall_alert_due(
    view: LedgerView, alerted_at: datetime | None, now: datetime, policy: Policy
) -> bool:
    """Whether nothing has moved for ``stall_alert_s`` and nobody was told of this stall yet.

    Silence that the throttle's own window explains is shorter than any sensible
    ``stall_alert_s``: a cut of the rate is followed by some 10 s without a byte.

    :param alerted_at: when the last alert was given, None = never.
    """
    if view.state is not PlanState.RUNNING or view.last_progress_at is None:
        return False
    if now - view.last_progress_at < timedelta(seconds=policy.stall_alert_s):
        return False
    return alerted_at is None or alerted_at < view.last_progress_at
