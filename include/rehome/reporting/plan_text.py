"""A plan and what became of it, in sentences: the top of its report, and the note of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rehome.account.words.figure_words import bytes_sentence, time_taken
from rehome.domain.plan.infeasible_lines import misses_of
from rehome.domain.plan.summary import PlanSummary
from rehome.domain.request.request import Preset
from rehome.domain.run.event_kind import AnyKind, EventKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.text import first_names, minute_text
from rehome.domain.time_range import TimeRange
from rehome.ledger.base.records import ThrottleState
from rehome.reporting.data import ReportData
from rehome.reporting.number_text import (
    bytes_text,
    count_text,
    rate_text,
)
from rehome.reporting.titles import title


def planned_note(
    request: Mapping[str, Any], summary: PlanSummary, dry_run: Mapping[str, Any] | None
) -> str:
    """The plan in one sentence: ``Drain broker 4: 12 replicas, 40 GB, about 20 min at 50 MB/s.``

    :param request: parameters of the request, as JSON has them.
    :param dry_run: what the dry run has found: it alone predicts a time.
    """
    said = title(str(request.get("action") or summary.action), request)
    if not summary.partitions and not_reached(summary):
        return f"{said}: nothing can be moved, and what was asked for is not reached."
    if not summary.partitions:
        return f"{said}: nothing has to change."
    if not summary.replica_moves:
        return f"{said}: {leaders_text(summary)}, nothing is copied."
    time_range = (dry_run or {}).get("predicted")
    predicted = [str(TimeRange(time_range["least_s"], time_range["most_s"]))] if time_range else []
    rate = (dry_run or {}).get("rate_bytes_per_s") or summary.rate_bytes_per_s
    pace = f"at {rate_text(rate)} per broker"
    if request.get("unthrottled"):
        pace = f"without a throttle, if brokers copy {rate_text(rate)}"
    copies = count_text(summary.replica_moves, "replica"), bytes_text(summary.bytes_to_copy)
    return f"{said}: {', '.join([*copies, *predicted])} {pace}."


def not_reached(summary: PlanSummary) -> bool:
    """Whether a plan leaves something that was asked for as it is."""
    return bool(misses_of(summary.infeasible)) or summary.cut_by_budget


def leaders_text(summary: PlanSummary) -> str:
    """How many leaders change, and how many of them by an election alone."""
    elected, changed = summary.elections, summary.leader_changes
    counts = [
        f"{count_text(changed, 'preferred leader')} {'changes' if changed == 1 else 'change'}"
        if changed or not elected
        else "",
        f"{count_text(elected, 'preferred leader')} {'is' if elected == 1 else 'are'} elected"
        if elected
        else "",
    ]
    return ", ".join(filter(None, counts))


def ended_note(data: ReportData, label: str, next_step: str, waits: str = "") -> str:
    """What has become of a plan, for the note of its run.

    :param label, next_step: the state of the plan, by its status summary.
    :param waits: what it waits for, instead of the label; "" = for nothing that is known.
    """
    parts = [
        waits or f"{label}.",
        planned_note(data.request, data.plan.summary, data.account.files.tried),
    ]
    if data.started:
        copied = bytes_sentence(data.account.bytes) if data.plan.moves else ""
        parts += [done_text(data), copied, time_taken(data.account)]
    if data.account.state is not PlanState.DONE:
        parts.append(f"Next: {next_step}")
    return " ".join(filter(None, parts))


def asked_for(data: ReportData) -> str:
    """What was asked for, by whom, and within which bounds."""
    record, request = data.record, data.request
    parts = [title(str(request.get("action") or data.plan.summary.action), request)]
    topics = request.get("topics") or ()
    if topics:
        parts.append(f"only {first_names(topics)}")
    parts.append(_pace(request))
    if end := request.get("window_end"):
        parts.append(f"with nothing in flight after {_time(str(end))}")
    if request.get("dry_run"):
        dry_run = "first as a dry run" if data.started else "as a dry run"
        parts.append("as files for Kafka's tools" if request.get("export") else dry_run)
    sentence = ", ".join(parts)
    preset = request.get("preset") or Preset.NONE
    if preset != Preset.NONE:
        sentence += f", by the preset {str(preset).replace('_', ' ')}"
    sentence += f". {record.actor} asked for it"
    return (
        f"{sentence}, {record.approved_by} approved it." if record.approved_by else f"{sentence}."
    )


def done_text(data: ReportData) -> str:
    """What was moved so far."""
    moves = data.account.moves
    if not moves.total and not_reached(data.plan.summary):
        return "Nothing was moved. The report says what is in the way."
    if not moves.total:
        return "Every partition is where it is to be: nothing was moved."
    if not data.started:
        return "Nothing was moved."
    ended = moves.count(MoveState.DONE)
    sentence = f"{ended:,} of {count_text(moves.total, 'partition')} moved"
    failures = moves.count(MoveState.FAILED)
    stopped = moves.count(MoveState.CANCELLED)
    others = moves.count(MoveState.SUPERSEDED)
    gone = moves.count(MoveState.GONE)
    sentence += f", {failures:,} failed" if failures else ""
    sentence += f", {stopped:,} cancelled" if stopped else ""
    sentence += f", {others:,} taken over by another client" if others else ""
    sentence += f", {gone:,} gone: they need no moving any more" if gone else ""
    return f"{sentence}. {_proof_text(data)}"


def _proof_text(data: ReportData) -> str:
    """What a fresh read has shown."""
    proof = data.account.files.verification
    if proof is None:
        return not_verified(data)
    if proof.get("ok"):
        return "A fresh read proves it."
    lost = proof.get("lost")
    if lost and not proof.get("problems"):
        of = count_text(len(lost), "partition")
        return f"A fresh read finds replicas where the plan says, but messages of {of} lost."
    return "A fresh read differs."


def not_verified(data: ReportData) -> str:
    """Where there is no proof. None comes of a plan that has failed, unless messages are lost."""
    comes = not data.account.state.ended or data.account.state is PlanState.DONE
    return "Nothing was verified yet." if comes else "Nothing was verified."


@dataclass(frozen=True, slots=True)
class Unusual:
    """One thing that did not go as planned.

    :param kind: what it was; ``subject``: what it was about, "" = the plan as a whole.
    """

    kind: str
    subject: str
    detail: str
    at: datetime | None = None


_KINDS: Mapping[AnyKind, str] = {
    EventKind.NOT_CANCELLED: "not cancelled",
    EventKind.NOT_READ_AFTER_CANCEL: "could not be read",
    EventKind.FOREIGN_RATE: "another client's rate",
    EventKind.RATE_NOT_SET: "rate not set",
    EventKind.THROTTLE_NOT_SET_AGAIN: "throttle not set again",
    EventKind.REASSIGNED_MEANWHILE: "reassigned by another client meanwhile",
    EventKind.THROTTLE_GONE: "throttle taken away",
    EventKind.DATA_LOST: "messages lost",
}
"""Kinds of events that are exceptions, as the report names them."""
_OUTCOMES = {
    MoveState.FAILED: "failed",
    MoveState.SUPERSEDED: "taken over by another client",
    MoveState.GONE: "gone",
}


def unusual(data: ReportData) -> list[Unusual]:
    """Errors, refused and foreign moves, what was not cancelled, what another client changed."""
    moves = [
        Unusual(_OUTCOMES[move.state], str(partition), move.detail, move.changed_at)
        for partition, move in data.moves.items()
        if move.state in _OUTCOMES
    ]
    events = [
        Unusual(_KINDS[event.kind], "", event.detail, event.at)
        for event in data.events
        if event.kind in _KINDS
    ]
    proof = data.account.files.verification or {}
    differing = [
        Unusual("differs from the plan", partition, detail)
        for partition, detail in proof.get("problems", {}).items()
    ]
    owed = [
        Unusual("throttle pending cleanup", f"{entry.resource} {entry.key}", entry.detail)
        for entry in data.throttles
        if entry.state is ThrottleState.OWED
    ]
    return [*moves, *differing, *owed, *events]


def _pace(request: Mapping[str, Any]) -> str:
    most = request.get("max_new_replicas_at_once")
    steps = f", {count_text(most, 'new replica')} of a partition at once at most" if most else ""
    return f"{_rate(request)}{steps}"


def _rate(request: Mapping[str, Any]) -> str:
    throttle = request.get("throttle")
    if request.get("unthrottled"):
        at_once = count_text(request.get("max_moves_per_broker") or 0, "move")
        return f"without a throttle, {at_once} at once for each broker and direction"
    if isinstance(throttle, int):
        return f"at {rate_text(throttle)} per broker and direction"
    return "at the rate that brokers can spare"


def _time(text: str) -> str:
    return minute_text(datetime.fromisoformat(text))
