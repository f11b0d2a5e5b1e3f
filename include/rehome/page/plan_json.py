"""Plans as data, for programs: the same account, in the same words, as the page shows. Pure.

Sizes are in bytes, rates in bytes per second, times ISO 8601 in UTC. None = not known; what has a
reason for that has it beside it, in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rehome.account.account import PlanAccount
from rehome.account.known import Fact
from rehome.account.pace import PlanPace
from rehome.account.plan_bytes import PlanBytes, byte_facts
from rehome.account.times import EndRange
from rehome.account.words import figure_words, finding_words, hurt_words, step_words
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.findings import FindingGroup
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.ledger.base.paging import MoveLine
from rehome.ledger.base.records import PlanRecord
from rehome.page.controls import Offer
from rehome.page.plan_view import PlanView
from rehome.reporting.titles import title_of


@dataclass(frozen=True, slots=True)
class ForReader:
    """What depends on who reads, and on Airflow.

    :param controls: what the reader may ask of the plan.
    :param asking: the task of its run that waits for a person; None = none does.
    :param poll_s: seconds from one poll to the next.
    """

    controls: Sequence[Control]
    asking: str | None
    poll_s: float


def plan_json(view: PlanView, reader: ForReader) -> dict[str, Any]:
    """One plan at one moment."""
    record, account, status = view.record, view.account, view.status
    waits = step_words.waits_text(account)
    return {
        **_head(record),
        "title": view.title,
        "run_id": record.run_id,
        "dag_id": record.dag_id,
        "approved_by": record.approved_by,
        "headline": status.headline,
        "state_left": status.state_left,
        "next_step": status.next_step,
        "waits": waits.text if waits else None,
        "waits_next_step": waits.next_step if waits else None,
        "asking": reader.asking,
        "controls": [control.value for control in reader.controls],
        "bytes": _bytes(account.bytes),
        "ends": ends_json(account.ends),
        "predicted": figure_words.predicted_text(account.predicted) or None,
        "elapsed": None if account.elapsed is None else figure_words.elapsed_text(account.elapsed),
        "pace": _pace(account.pace),
        "throttle": _throttle(view),
        "moves": {
            "all": view.account.moves.total,
            "in_flight": view.account.moves.in_flight,
            "wait": view.account.moves.count(MoveState.PENDING),
            "done": view.account.moves.count(MoveState.DONE),
            "by_state": {
                state.value: count for state, count in view.account.moves.by_state.items()
            },
        },
        "seen_at": _time(view.account.seen_at),
        "poll_s": reader.poll_s,
        "window_end": _time(view.record.window_end),
        "brokers": [asdict(line) for line in view.brokers],
        "brokers_left_out": view.brokers_left_out,
        "attention": list(_attention(view, account)),
        "findings": [_finding(group) for group in account.findings],
        "not_reached": list(view.not_reached),
        "limits": list(view.limits),
        "files_problem": view.files_problem or None,
    }


def _head(record: PlanRecord) -> dict[str, Any]:
    return {
        "plan_id": record.plan_id,
        "plan_hash": record.plan_hash,
        "state": record.state.value,
        "ended": record.state.ended,
        "action": record.action,
        "cluster_id": record.cluster_id,
        "connection": record.planned_through,
        "asked_by": record.actor,
        "dry_run": bool(record.request.get("dry_run")),
        "for_next_window": record.state is PlanState.PLANNED and record.for_window_at is not None,
        "pause_requested": record.state is PlanState.RUNNING and record.pause_requested,
        "cancel_requested": record.state.active and record.cancel_requested,
        "made_at": _time(record.created_at),
        "started_at": _time(record.started_at),
        "ended_at": _time(record.ended_at),
    }


def line_json(record: PlanRecord, size: PlanBytes, ends: Fact[EndRange]) -> dict[str, Any]:
    """A plan in a list."""
    return {
        **_head(record),
        "title": title_of(record),
        "bytes": _bytes(size),
        "ends": ends_json(ends),
    }


def ends_json(ends: Fact[EndRange]) -> dict[str, Any]:
    """When the last copy is complete; or why that is not known."""
    end_range, why = figure_words.end_of(ends)
    return {
        "least": _time(end_range.least if end_range is not None else None),
        "most": _time(end_range.most if end_range is not None else None),
        "not_known": why or None,
    }


def moves_json(view: PlanView, lines: Iterable[MoveLine], total: int) -> dict[str, Any]:
    """Moves of a plan, as the table of partitions lists them."""
    return {"total": total, "moves": [_move(view, line) for line in lines]}


def _move(view: PlanView, line: MoveLine) -> dict[str, Any]:
    move, flies = line.move, line.state is MoveState.ADMITTED
    rate, why = figure_words.rate_of_partition(view.account.pace, move.partition, in_flight=flies)
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "current": list(move.current),
        "target": list(move.target),
        "state": line.state.value,
        "detail": line.detail or None,
        "reason": move.reason.value,
        "bytes_to_copy": move.bytes_to_copy,
        "bytes_behind": line.bytes_behind,
        "messages_behind": line.messages_behind,
        "bytes_per_s": rate,
        "not_known": (why or None) if rate is None else None,
    }


def offer_json(offer: Offer) -> dict[str, Any]:
    """What may be asked of a plan, and what it would lead to."""
    by_broker = offer.rates_by_broker
    return {
        "control": offer.control.value,
        "button": offer.button,
        "effects": list(offer.effects),
        "refusal": offer.refusal or None,
        "throttle_bytes_per_s": offer.rate_bytes_per_s,
        "throttle_by_broker": None if by_broker is None else by_broker.to_json(),
        "max_moves_per_broker": offer.moves_per_broker,
    }


def _bytes(plan_bytes: PlanBytes) -> dict[str, Any]:
    return {
        **byte_facts(plan_bytes),
        "fraction": plan_bytes.fraction,
        "of_moves": not plan_bytes.has_bytes,
        "text": figure_words.in_place_text(plan_bytes),
        "total_text": figure_words.total_text(plan_bytes) or None,
        "received_text": figure_words.received_text(plan_bytes) or None,
    }


def _pace(pace: Fact[PlanPace]) -> dict[str, Any]:
    rate, why = figure_words.rate_of(pace)
    return {"bytes_per_s": rate, "not_known": why or None}


def _throttle(view: PlanView) -> dict[str, Any]:
    return {
        "bytes_per_s": view.account.throttle_bytes_per_s,
        "set_on_brokers": view.record.rate_bytes_per_s,
        "by_broker": list(view.record.asked_rates_by_broker.lines()),
        "unthrottled": view.record.unthrottled,
        "max_moves_per_broker": view.record.requested_moves_per_broker,
    }


def _attention(view: PlanView, account: PlanAccount) -> Iterator[dict[str, Any]]:
    """What hurts, then alerts, as the page lists them."""
    for hurt in account.hurts:
        if hurt.kind is not HurtKind.ALERT:
            text, step = hurt_words.hurt_text(hurt)
            control = step_words.HURT_CONTROLS.get(hurt.kind)
            yield _needs(hurt.kind, text, step, step, hurt.since, control)
    for alert in view.alerts:
        control, here = step_words.step_here(alert.kind, alert.next_step)
        yield _needs(alert.kind, alert.text, alert.next_step, here, None, control)


def _finding(group: FindingGroup) -> dict[str, Any]:
    return {
        "severity": group.kind.severity.value,
        "check": group.kind.check,
        "count": group.count,
        "text": finding_words.group_line(group),
    }


def _needs(
    kind: str, text: str, step: str, here: str, since: datetime | None, control: Control | None
) -> dict[str, Any]:
    return {
        "kind": str(kind),
        "text": text,
        "next_step": step,
        "next_step_here": here,
        "since": _time(since),
        "control": None if control is None else control.value,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
