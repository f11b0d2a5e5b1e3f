"""Alerts that are due: by a poll, the ledger, a sweep, a forecast or a question. Pure, or reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rehome.account.account import account_of
from rehome.account.evidence import PlanEvidence
from rehome.alerts import alert_text
from rehome.alerts.alert import Alert, about_plan
from rehome.alerts.kinds import AlertKey, AlertKind
from rehome.alerts.plan_alerts import Patience, alerts_of
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import DataSeen, MoveSums
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState
from rehome.domain.text import bytes_text, count_text
from rehome.execution.poll import Poll
from rehome.execution.stall import patience_s
from rehome.ledger.base.alert_records import AlertRecord
from rehome.ledger.base.records import PlanRecord, ThrottleEntry
from rehome.ledger.store import Ledger

JUDGED_AT_POLL = (
    AlertKind.NOT_CANCELLED,
    AlertKind.STALLED,
    AlertKind.OUTPACED,
    AlertKind.THROTTLE_LOWERED,
    AlertKind.WINDOW_WILL_BE_MISSED,
)
"""What each poll judges anew."""
OVER_WHEN_IT_RUNS = (
    AlertKind.ORPHANED,
    AlertKind.DAG_PAUSED,
    AlertKind.PAUSED_AT_WINDOW_END,
    AlertKind.PAUSED,
    AlertKind.APPROVAL_WAITING,
)
"""What is over when a plan is polled by its own run."""
OVER_WITH_ITS_RUN = (
    *JUDGED_AT_POLL,
    AlertKind.THROTTLE_RESTORED,
    AlertKind.APPROVAL_WAITING,
    AlertKind.ORPHANED,
    AlertKind.DAG_PAUSED,
)
"""What is over when the run of a plan has ended."""
QUIET_S = 300.0
"""What a poll judges is over when it was not so for this long."""
LOST_OFTEN = 3
"""After so many losses of one key people are notified, and again after as many more."""


def at_poll(
    record: PlanRecord, poll: Poll, policy: Policy, raised: Sequence[AlertRecord]
) -> list[Alert]:
    """What a poll of a running plan has found that people must know: by the account that follows
    from what it has seen, without another reading of the ledger.

    :param record: of the plan after the poll.
    :param raised: what was raised about it before.
    """
    view, sample, now = poll.view, poll.progress.sample, poll.observation.taken_at
    in_flight = MoveState.ADMITTED in view.moves.values()
    counts = Counter(view.moves.values())
    evidence = PlanEvidence(
        record,
        sums={state: MoveSums(moves) for state, moves in counts.items()},
        recent=(sample,),
        hurts=poll.hurts,
        alerts=tuple(raised),
        rates=view.rates,
        outpaced=tuple(str(each) for each in poll.progress.outpaced if each.lasts),
        window_end=policy.window_end,
    )
    alert_s = patience_s(view, policy.stall_alert_s, in_flight=in_flight)
    account = account_of(evidence, now)
    alerts = alerts_of(account, Patience(alert_s, policy.stall_timeout_s))
    return [alert for alert in alerts if alert.kind in JUDGED_AT_POLL]


def not_any_more(plan_id: str, alerts: Iterable[Alert]) -> list[AlertKey]:
    """What a poll judges and has not found."""
    kinds = {alert.kind for alert in alerts}
    return [(kind, plan_id) for kind in JUDGED_AT_POLL if kind not in kinds]


def throttles_restored(
    record: PlanRecord, entries: Sequence[ThrottleEntry], poll_interval_s: float
) -> Alert:
    """Of throttles that were gone while something in flight relied on them."""
    text, next_step = alert_text.throttle_restored(entries, poll_interval_s)
    return Alert(AlertKind.THROTTLE_RESTORED, text=text, next_step=next_step, **about_plan(record))


def data_lost(record: PlanRecord, lost: Mapping[TopicPartition, DataSeen]) -> list[Alert]:
    """Of messages that were lost while the plan moved their partitions; [] = none that is known.

    As long as no more partitions have lost some, it is the same one.
    """
    if not lost:
        return []
    text, next_step = alert_text.data_lost(lost)
    about = about_plan(record)
    about["facts"] |= {"lost": {str(p): [d.lost.start, d.lost.stop] for p, d in lost.items()}}
    occurrence = count_text(len(lost), "partition")
    return [
        Alert(AlertKind.DATA_LOST, text=text, next_step=next_step, occurrence=occurrence, **about)
    ]


def orphan(record: PlanRecord, in_flight: int, *, dag_paused: bool = False) -> Alert:
    """Of a plan that runs, and whose run sends no heartbeat, or whose DAG is paused.

    :param in_flight: moves that the ledger has as such.
    """
    words = alert_text.dag_paused if dag_paused else alert_text.orphaned_text
    kind = AlertKind.DAG_PAUSED if dag_paused else AlertKind.ORPHANED
    text, next_step = words(record, in_flight)
    return Alert(kind, text=text, next_step=next_step, **about_plan(record))


def owed_alerts(ledger: Ledger, cluster_id: str) -> tuple[list[Alert], list[AlertKey]]:
    """What plans that run no more still owe on a cluster; and of which nothing is owed any more.

    A plan whose run is still at work owes nothing yet.
    """
    holder = ledger.holder(cluster_id)
    by_plan: dict[str, list[str]] = {}
    for entry in ledger.throttles(cluster_id=cluster_id, open_only=True):
        why = f": {entry.detail}" if entry.detail else ""
        by_plan.setdefault(entry.plan_id, []).append(f"{entry.resource} {entry.key}{why}")
    copying = set(ledger.stopped_with_admitted(cluster_id))
    alerts = []
    for plan_id in sorted({*by_plan, *copying}):
        record = ledger.plan(plan_id)
        if record.state.active or (holder is not None and holder.owner == record.driver):
            continue
        copies: list[str] = []
        if plan_id in copying:
            moves = ledger.planned_moves(plan_id, MoveState.ADMITTED)
            copies = [str(move.partition) for move in moves]
        alerts.append(owed_alert(record, by_plan.get(plan_id, ()), copies))
    owing = {alert.subject for alert in alerts}
    raised = ledger.open_alerts(AlertKind.OWED, cluster_id=cluster_id)
    return alerts, [(each.kind, each.subject) for each in raised if each.subject not in owing]


def owed_alert(record: PlanRecord, settings: Sequence[str], copies: Sequence[str] = ()) -> Alert:
    """Of what a plan owes."""
    words = alert_text.owed_text(list(settings), copies, record.planned_through or "")
    about = about_plan(record)
    about["facts"] |= {"throttles_owed": list(settings), "copies_owed": list(copies)}
    return Alert(AlertKind.OWED, text=words[0], next_step=words[1], **about)


def foreign_leftovers(cluster_id: str, connection: str, throttles: Collection[object]) -> Alert:
    """Of throttles that no plan has set, while nothing is reassigned."""
    names = [str(throttle) for throttle in throttles]
    text, next_step = alert_text.foreign_leftovers(names)
    return Alert(
        AlertKind.FOREIGN_LEFTOVERS,
        cluster_id,
        text,
        next_step,
        cluster_id=cluster_id,
        connection=connection,
        facts={"throttles": names},
    )


def disks_full(forecast: Iterable[dict[str, Any]], days: float, **about: Any) -> Alert | None:
    """Of brokers whose disks will be full soon; None = there is none.

    :param forecast: rows of a disk forecast as JSON.
    :param about: of the alert; with a plan's id, as that plan would leave the disks.
    """
    full = sorted(
        (row["days_until_full"], row["broker"], row["growth_bytes_per_s"])
        for row in forecast
        if row["days_until_full"] is not None and row["days_until_full"] < days
    )
    if not full:
        return None
    soonest = [(broker, left, growth) for left, broker, growth in full]
    after = bool(about.get("plan_id"))
    text, next_step = alert_text.disk_forecast(soonest, days, after=after)
    facts = {**about.pop("facts", {}), "days_until_full": {b: left for b, left, _ in soonest}}
    return Alert(AlertKind.DISK_FORECAST, text=text, next_step=next_step, facts=facts, **about)


def approval_waits(
    plan: Plan,
    record: PlanRecord,
    attempt: str,
    window_end: datetime | None = None,
    lapses_at: datetime | None = None,
) -> Alert:
    """Of a plan that a person is asked to approve.

    :param attempt: of the question: each is another one.
    :param window_end: when the window closes that it is to run in; None = it is to run in none.
    :param lapses_at: when Airflow stops waiting for an answer; None = never.
    """
    summary = plan.summary
    what = (
        f"{plan.action} of {count_text(summary.partitions, 'partition')}, "
        f"{bytes_text(summary.bytes_to_move)} to copy"
    )
    text, next_step = alert_text.approval_waiting(what, window_end, lapses_at)
    about = about_plan(record)
    deadline = min(filter(None, (window_end, lapses_at)), default=None)
    about["facts"]["deadline"] = deadline and deadline.astimezone(UTC).isoformat()
    return Alert(
        AlertKind.APPROVAL_WAITING, text=text, next_step=next_step, occurrence=attempt, **about
    )
