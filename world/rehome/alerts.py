"""What people are told without asking: found as the trigger and the sweep find it, never sent."""

from __future__ import annotations

from include.alerts.due_alerts import QUIET_S, at_poll, not_any_more, orphan, owed_alerts
from include.alerts.kinds import AlertKind
from include.domain.run.run_policy import Policy
from include.domain.run.states import MoveState
from include.execution.access.lease import orphaned
from include.execution.poll import Poll
from include.ledger.store import Ledger

AGAIN_S = 3600.0


def after_poll(ledger: Ledger, plan_id: str, found: Poll, policy: Policy) -> None:
    """As ``PlanWatch``."""
    alerts = at_poll(ledger.plan(plan_id), found, policy, ledger.alerts(plan_id))
    over = not_any_more(plan_id, alerts)
    ledger.raise_alerts([alert.raised(AGAIN_S) for alert in alerts], over, quiet_s=QUIET_S)


def after_sweep(ledger: Ledger, cluster_id: str) -> None:
    """As ``SweepThrottlesOperator``: what only people can repair."""
    found, over = owed_alerts(ledger, cluster_id)
    plan = ledger.active_plan(cluster_id)
    if plan is not None and orphaned(plan, ledger):
        in_flight = len(ledger.planned_moves(plan.plan_id, MoveState.ADMITTED))
        found.append(orphan(plan, in_flight))
    for raised in ledger.open_alerts(AlertKind.ORPHANED, cluster_id=cluster_id):
        if plan is None or raised.subject != plan.plan_id:
            over.append((raised.kind, raised.subject))
    ledger.raise_alerts([alert.raised(AGAIN_S) for alert in found], over)
