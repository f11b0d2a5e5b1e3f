"""What is wrong with a plan that has not ended well, or does not run as it should.

The page shows what is found here, and each poll has it sent: there is one definition of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rehome.account.counts import PlanMoves
from rehome.account.words.hurt_words import held_back_text
from rehome.alerts import alert_text
from rehome.alerts.alert import Alert, about_plan
from rehome.alerts.alert_text import AlertText
from rehome.alerts.kinds import AlertKind
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.flows import RateChange, RateReason
from rehome.domain.run.ledger_view import DataSeen
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.alert_records import AlertRecord
from rehome.ledger.base.records import PlanRecord

LATE_BY = 1.1
"""A window will be missed when the time left is so many times what the window leaves: an estimate
that is about right would come and go. Once raised, it stays until the rest fits."""
IN_VAIN = "in vain"
"""The occurrence of a stall in which the plan waits for what cannot end by itself."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What alerts are found in.

    :param rates: changes of the rate, oldest first; the newest ones are enough.
    :param ends_at: when the last copy ends at this pace; None = not known.
    :param orphaned: whether the plan runs, and its run sends no heartbeat.
    :param owed: settings of it that may still be set on the cluster, and that no run is about to
        take back.
    :param patience_s: how long nothing may move before that is an alert.
    :param gives_up_s: after how long the plan is ended for that.
    :param hurts: what the newest poll has found.
    :param outpaced: where copies cannot catch up with producers, by this poll; None = it is not
        known, but for what was raised.
    :param lost: partitions of the plan of which messages are lost.
    :param dag_paused: whether the plan's DAG is known to be paused in Airflow.
    :param raised: what was raised about the plan, open or not.
    """

    record: PlanRecord
    now: datetime
    moves: PlanMoves
    rates: tuple[RateChange, ...]
    window_end: datetime | None
    ends_at: datetime | None
    orphaned: bool
    owed: int
    patience_s: float
    gives_up_s: float
    hurts: tuple[Hurt, ...] = ()
    outpaced: tuple[str, ...] | None = None
    lost: Mapping[TopicPartition, DataSeen] = field(default_factory=dict)
    raised: tuple[AlertRecord, ...] = field(default=())
    dag_paused: bool = False


def alerts_of(signs: Signs) -> tuple[Alert, ...]:
    """Every alert, the worst first."""
    about = about_plan(signs.record)
    found = (
        Alert(kind, text=text, next_step=next_step, occurrence=_occurrence(kind, signs), **about)
        for kind, (text, next_step) in _found(signs)
    )
    return tuple(sorted(found, key=lambda alert: list(AlertKind).index(alert.kind)))


def _found(signs: Signs) -> Iterator[tuple[AlertKind, AlertText]]:
    if signs.lost:
        yield AlertKind.DATA_LOST, alert_text.data_lost(signs.lost)
    failed = signs.moves.count(MoveState.FAILED)
    if failed:
        yield AlertKind.FAILED_MOVES, alert_text.failed_moves(failed)
    if signs.owed and not signs.record.state.active:
        yield AlertKind.OWED, alert_text.throttles_left(signs.owed)
    if signs.record.state is PlanState.RUNNING:
        yield from _of_running(signs)
    for words in not_sent(signs.raised):
        yield AlertKind.CHANNEL_FAILED, words


def not_sent(raised: Iterable[AlertRecord]) -> Iterator[AlertText]:
    """Alerts that last, and have not reached every channel."""
    for each in raised:
        if each.failed_channels and each.closed_at is None:
            why = next(iter(each.failed_channels.values()))
            yield alert_text.channel_failed(each.kind, list(each.failed_channels), why)


def _of_running(signs: Signs) -> Iterator[tuple[AlertKind, AlertText]]:
    record = signs.record
    flying = signs.moves.in_flight
    if signs.dag_paused:
        yield AlertKind.DAG_PAUSED, alert_text.dag_paused(record, flying)
    elif signs.orphaned:
        yield AlertKind.ORPHANED, alert_text.orphaned(record, flying)
    if record.refused_cancels:
        words = alert_text.not_cancelled(record, signs.gives_up_s)
        yield AlertKind.NOT_CANCELLED, words
    yield from _of_stillness(signs)
    yield from _of_producers(signs)
    yield from _of_rate(signs)
    for each in signs.hurts:
        if each.kind is HurtKind.SILENT_BROKERS:
            yield AlertKind.SILENT_BROKERS, alert_text.silent(each.brokers)
    if _window_will_be_missed(signs) and signs.ends_at and signs.window_end:
        words = alert_text.window_will_be_missed(
            signs.ends_at, signs.window_end, unthrottled=record.unthrottled
        )
        yield AlertKind.WINDOW_WILL_BE_MISSED, words


def _occurrence(kind: AlertKind, signs: Signs) -> str:
    """An alert that says to wait for another client's reassignment is not enough when that cannot
    end any more: then there is another one. It stays that as long as the plan does not move, as
    brokers that come and go would bring it again and again.
    """
    if kind is not AlertKind.STALLED:
        return ""
    said = any(
        each.kind is kind and each.closed_at is None and each.occurrence == IN_VAIN
        for each in signs.raised
    )
    hangs = _only_waits(signs) and any(each.hangs for each in signs.hurts)
    return IN_VAIN if hangs or said else ""


def _held(signs: Signs) -> bool:
    held_at, moved_at = signs.record.held_at, signs.record.last_progress_at
    return held_at is not None and (moved_at is None or held_at > moved_at)


def _only_waits(signs: Signs) -> bool:
    return _held(signs) and not signs.moves.in_flight


def _of_stillness(signs: Signs) -> Iterator[tuple[AlertKind, AlertText]]:
    """A plan that only waits for others is said to be held until its stillness is worth more."""
    moved_at = signs.record.last_progress_at
    if moved_at is not None and signs.now - moved_at > timedelta(seconds=signs.patience_s):
        words = alert_text.stalled(
            moved_at,
            signs.now,
            held_back_text(signs.hurts),
            only_waits=_only_waits(signs),
            hangs=any(each.hangs for each in signs.hurts),
            gives_up_s=signs.gives_up_s,
            unthrottled=signs.record.unthrottled,
        )
        yield AlertKind.STALLED, words
    elif _held(signs):
        yield AlertKind.HELD, alert_text.held()


def _of_producers(signs: Signs) -> Iterator[tuple[AlertKind, AlertText]]:
    """By the poll itself, or as a poll has found it that still counts."""
    if signs.outpaced is not None:
        if signs.outpaced:
            yield AlertKind.OUTPACED, alert_text.outpaced(signs.outpaced)
        return
    for each in signs.raised:
        if each.kind is AlertKind.OUTPACED and each.closed_at is None:
            yield AlertKind.OUTPACED, (each.alert["text"], each.alert["next_step"])


def _of_rate(signs: Signs) -> Iterator[tuple[AlertKind, AlertText]]:
    """Strain holds from the cut of the throttle until it is back at what was asked for."""
    last = signs.rates[-1] if signs.rates else None
    if last is None or last.target_bytes_per_s >= last.limit_bytes_per_s:
        return
    cuts = [change for change in signs.rates if change.reason is RateReason.STRAIN]
    yield AlertKind.THROTTLE_LOWERED, alert_text.throttle_lowered(cuts[-1] if cuts else last, last)


def _window_will_be_missed(signs: Signs) -> bool:
    if signs.window_end is None or signs.ends_at is None:
        return False
    raised = any(
        each.kind is AlertKind.WINDOW_WILL_BE_MISSED and each.closed_at is None
        for each in signs.raised
    )
    left, until_close = signs.ends_at - signs.now, signs.window_end - signs.now
    return left > until_close if raised else left > LATE_BY * max(until_close, timedelta())
