"""What hurts a plan now, in the order of what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from rehome.account.evidence import PlanEvidence
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.progress import PACE_WINDOW
from rehome.domain.run.states import PlanState

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


def hurts_of(evidence: PlanEvidence, now: datetime) -> tuple[Hurt, ...]:
    """What the newest poll of a plan that runs has found, and open alerts that are about something
    else. Each stays until a poll finds that it is over, or the alert is closed: where no poll has
    come of late, that is the first thing to know.
    """
    hurts = evidence.hurts if evidence.record.state is PlanState.RUNNING else ()
    polled_at = _unread_since(evidence, now)
    if polled_at is not None:
        dated_hurts = (replace(each, known_at=polled_at) for each in hurts)
        hurts = (Hurt(HurtKind.NOT_POLLED, since=polled_at), *dated_hurts)
    covered = covered_by(hurts)
    alerts = [
        Hurt(HurtKind.ALERT, since=each.first_raised_at, alert=each.kind.value)
        for each in evidence.alerts
        if each.closed_at is None and each.kind not in covered
    ]
    order = list(AlertKind)
    return (*hurts, *sorted(alerts, key=lambda each: order.index(AlertKind(each.alert))))


def _unread_since(evidence: PlanEvidence, now: datetime) -> datetime | None:
    """The newest poll, or when the plan last went on, if that is too long ago; None = it is not."""
    if evidence.record.state is not PlanState.RUNNING or evidence.sample is None:
        return None
    went_on = [at for _, at in evidence.turns[-1:]]
    newest = max([evidence.sample.sampled_at, *went_on])
    return newest if now - newest > PACE_WINDOW else None
