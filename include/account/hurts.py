"""What hurts a plan now, in the order of what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from include.account.evidence import PlanEvidence
from include.alerts.kinds import AlertKind
from include.domain.run.causes.hurts import Hurt, HurtKind
from include.domain.run.states import PlanState

COVERED: Mapping[HurtKind, frozenset[AlertKind]] = {
    HurtKind.SILENT_BROKERS: frozenset({AlertKind.SILENT_BROKERS}),
    HurtKind.NOT_CANCELLED: frozenset({AlertKind.NOT_CANCELLED}),
    HurtKind.FOREIGN: frozenset({AlertKind.HELD}),
    HurtKind.OUTPACED: frozenset({AlertKind.OUTPACED}),
}
"""Alerts that say no more than what the poll has found."""


def covered_by(hurts: Iterable[Hurt]) -> frozenset[AlertKind]:
    """Alerts that need no line of their own beside these."""
    return frozenset().union(*(COVERED.get(each.kind, frozenset()) for each in hurts))


def hurts_of(evidence: PlanEvidence) -> tuple[Hurt, ...]:
    """What the newest poll of a plan that runs has found, and open alerts that are about something
    else. Each stays until a poll finds that it is over, or the alert is closed.
    """
    found = evidence.hurts if evidence.record.state is PlanState.RUNNING else ()
    covered = covered_by(found)
    alerts = [
        Hurt(HurtKind.ALERT, since=each.first_raised_at, alert=each.kind.value)
        for each in evidence.alerts
        if each.closed_at is None and each.kind not in covered
    ]
    order = list(AlertKind)
    return (*found, *sorted(alerts, key=lambda each: order.index(AlertKind(each.alert))))
