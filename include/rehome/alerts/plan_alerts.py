"""What is wrong with a plan that has not ended well, or does not run as it should.

The page shows what is found here, and each poll has it sent: there is one definition of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from rehome.account.account import PlanAccount
from rehome.account.words.hurt_words import held_back_text
from rehome.alerts import alert_text
from rehome.alerts.alert import Alert, about_plan
from rehome.alerts.alert_text import AlertText
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.flows import RateReason
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.alert_records import AlertRecord

LATE_BY = 1.1
"""A window will be missed when the time left is so many times what the window leaves: an estimate
that is about right would come and go. Once raised, it stays until the rest fits."""
IN_VAIN = "in vain"
"""The occurrence of a stall in which the plan waits for what cannot end by itself."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long nothing of a plan may move.

    :param alert_s: before that is an alert.
    :param gives_up_s: before the plan is ended for that.
    """

    alert_s: float
    gives_up_s: float


def alerts_of(plan: PlanAccount, patience: Patience) -> tuple[Alert, ...]:
    """Every alert about a plan, the worst first: by its account alone."""
    about = about_plan(plan.record)
    alerts = (
        Alert(kind, text=text, next_step=next_step, occurrence=_occurrence(kind, plan), **about)
        for kind, (text, next_step) in _alerts_of(plan, patience)
    )
    return tuple(sorted(alerts, key=lambda alert: list(AlertKind).index(alert.kind)))


def _alerts_of(plan: PlanAccount, patience: Patience) -> Iterator[tuple[AlertKind, AlertText]]:
    if plan.lost:
        yield AlertKind.DATA_LOST, alert_text.data_lost(plan.lost)
    failed = plan.moves.count(MoveState.FAILED)
    if failed:
        yield AlertKind.FAILED_MOVES, alert_text.failed_moves(failed)
    if plan.throttles.owed and not plan.record.state.active:
        yield AlertKind.OWED, alert_text.throttles_left(plan.throttles.owed)
    if plan.record.state is PlanState.RUNNING:
        yield from _of_running(plan, patience)
    for words in not_sent(plan.raised):
        yield AlertKind.CHANNEL_FAILED, words


def not_sent(raised: Iterable[AlertRecord]) -> Iterator[AlertText]:
    """Alerts that last, and have not reached every channel."""
    for each in raised:
        if each.failed_channels and each.closed_at is None:
            why = next(iter(each.failed_channels.values()))
            yield alert_text.channel_failed(each.kind, list(each.failed_channels), why)


def _of_running(plan: PlanAccount, patience: Patience) -> Iterator[tuple[AlertKind, AlertText]]:
    record = plan.record
    flying = plan.moves.in_flight
    if plan.dag_paused:
        yield AlertKind.DAG_PAUSED, alert_text.dag_paused(record, flying)
    elif plan.orphaned:
        yield AlertKind.ORPHANED, alert_text.orphaned_text(record, flying)
    if record.refused_cancels:
        words = alert_text.not_cancelled(record, patience.gives_up_s)
        yield AlertKind.NOT_CANCELLED, words
    yield from _of_stillness(plan, patience)
    yield from _of_producers(plan)
    yield from _of_rate(plan)
    for each in plan.polled:
        if each.kind is HurtKind.SILENT_BROKERS:
            yield AlertKind.SILENT_BROKERS, alert_text.silent(each.brokers)
    if _window_will_be_missed(plan) and plan.at_this_pace and plan.window_end:
        words = alert_text.window_will_be_missed(
            plan.at_this_pace, plan.window_end, unthrottled=record.unthrottled
        )
        yield AlertKind.WINDOW_WILL_BE_MISSED, words


def _occurrence(kind: AlertKind, plan: PlanAccount) -> str:
    """An alert that says to wait for another client's reassignment is not enough when that cannot
    end any more: then there is another one. It stays that as long as the plan does not move, as
    brokers that come and go would bring it again and again.
    """
    if kind is not AlertKind.STALLED:
        return ""
    said = any(
        each.kind is kind and each.closed_at is None and each.occurrence == IN_VAIN
        for each in plan.raised
    )
    hangs = plan.only_waits and any(each.hangs for each in plan.polled)
    return IN_VAIN if hangs or said else ""


def _of_stillness(plan: PlanAccount, patience: Patience) -> Iterator[tuple[AlertKind, AlertText]]:
    """A plan that only waits for others is said to be held until its stillness is worth more."""
    moved_at = plan.record.last_progress_at
    if moved_at is not None and plan.now - moved_at > timedelta(seconds=patience.alert_s):
        words = alert_text.stalled_text(
            moved_at,
            plan.now,
            held_back_text(plan.polled),
            only_waits=plan.only_waits,
            hangs=any(each.hangs for each in plan.polled),
            gives_up_s=patience.gives_up_s,
            unthrottled=plan.record.unthrottled,
        )
        yield AlertKind.STALLED, words
    elif plan.is_held:
        yield AlertKind.HELD, alert_text.held_text()


def _of_producers(plan: PlanAccount) -> Iterator[tuple[AlertKind, AlertText]]:
    """By the poll itself, or as a poll has found it that still counts."""
    if plan.outpaced is not None:
        if plan.outpaced:
            yield AlertKind.OUTPACED, alert_text.outpaced_text(plan.outpaced)
        return
    for each in plan.raised:
        if each.kind is AlertKind.OUTPACED and each.closed_at is None:
            yield AlertKind.OUTPACED, (each.alert["text"], each.alert["next_step"])


def _of_rate(plan: PlanAccount) -> Iterator[tuple[AlertKind, AlertText]]:
    """Strain holds from the cut of the throttle until it is back at what was asked for."""
    last = plan.rates[-1] if plan.rates else None
    if last is None or last.target_bytes_per_s >= last.limit_bytes_per_s:
        return
    cuts = [change for change in plan.rates if change.reason is RateReason.STRAIN]
    yield AlertKind.THROTTLE_LOWERED, alert_text.throttle_lowered(cuts[-1] if cuts else last, last)


def _window_will_be_missed(plan: PlanAccount) -> bool:
    if plan.window_end is None or plan.at_this_pace is None:
        return False
    raised = any(
        each.kind is AlertKind.WINDOW_WILL_BE_MISSED and each.closed_at is None
        for each in plan.raised
    )
    left, until_close = plan.at_this_pace - plan.now, plan.window_end - plan.now
    return left > until_close if raised else left > LATE_BY * max(until_close, timedelta())
